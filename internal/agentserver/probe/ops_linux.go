package probe

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// dialTime bounds one connection. What is refused is so at once.
const dialTime = 5 * time.Second

func (p *prober) ops() map[string]op {
	return map[string]op{
		wire.ProbeLook:      func(ctx context.Context, _ json.RawMessage) (any, error) { return look(ctx) },
		wire.ProbeDial:      with(dial),
		wire.ProbeFile:      with(makeFile),
		wire.ProbeOccupy:    with(p.occupy),
		wire.ProbeReach:     with(reach),
		wire.ProbeProcesses: with(processes),
		wire.ProbeMemory:    with(p.memory),
		wire.ProbeCPU:       with(cpuTime),
	}
}

// dial connects, asks as a client of HTTP would, and counts what comes back.
func dial(ctx context.Context, d wire.Dial) (any, error) {
	n, connected, err := fetch(ctx, d.Address, "GET / HTTP/1.0\r\n\r\n", 4<<10)
	out := wire.Dialled{Connected: connected, Bytes: len(n)}
	if err != nil {
		out.Error = err.Error()
	}
	return out, nil
}

// fetch returns what a server says, at most size bytes.
func fetch(ctx context.Context, address, question string, size int64) (said []byte, connected bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(dialTime)) // a connection that is gone fails below
	if _, err := io.WriteString(conn, question); err != nil {
		return nil, true, err
	}
	said, err = io.ReadAll(io.LimitReader(conn, size))
	return said, true, err
}

// makeFile makes an empty file, whose owner shows on the host.
func makeFile(_ context.Context, path string) (any, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return "", f.Close()
}

// errName is the name of an error's errno, "" for none.
func errName(err error) string {
	if err == nil {
		return ""
	}
	if name := asErrno(err); name != "" {
		return name
	}
	return err.Error()
}
