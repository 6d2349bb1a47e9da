package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/relay"
	"github.com/Insights/insightscli/internal/link/wire"
)

// verdictTime bounds the wait for a host that is there: it resolves and dials first.
const verdictTime = time.Minute

// errRefused is wrapped when the host does not make the connection.
var errRefused = errors.New("refused by the host")

// request says what was dialled, and keeps its name in the table until release.
func (s *Server) request(to netip.AddrPort) (req wire.Egress, release func()) {
	if s.isProxy(to) {
		return wire.Egress{Proxy: true}, func() {}
	}
	name, release := s.table.use(to.Addr())
	return wire.Egress{Name: name, Addr: to.String()}, release
}

// isProxy reports whether a client has dialled the listener itself.
func (s *Server) isProxy(to netip.AddrPort) bool {
	return to.Addr().IsLoopback() && to.Port() == wire.PortEgress
}

// ask offers one connection to the host. Where it agrees, what follows on the stream is the
// connection.
func (s *Server) ask(ctx context.Context, req wire.Egress) (net.Conn, error) {
	if addr, err := netip.ParseAddrPort(req.Addr); err == nil && addr.Addr().IsLoopback() {
		return nil, errors.New("an address of the sandbox itself") // only without nat rules
	}
	ctx, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	stream, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { relay.HangUp(stream) })
	err = agree(stream, req)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		relay.HangUp(stream)
		return nil, err
	}
	return stream, nil
}

// agree exchanges the two lines.
func agree(stream io.ReadWriter, req wire.Egress) error {
	line, err := json.Marshal(req)
	if err != nil {
		return err
	}
	if len(line) >= wire.MaxEgressLine {
		return errors.New("the request is too long")
	}
	if _, err := stream.Write(append(line, '\n')); err != nil {
		return err
	}
	answer, err := readLine(stream)
	if err != nil {
		return err
	}
	var verdict wire.EgressVerdict
	if err := json.Unmarshal(answer, &verdict); err != nil {
		return fmt.Errorf("read the verdict: %w", err)
	}
	if !verdict.OK {
		return fmt.Errorf("%w: %s", errRefused, verdict.Reason)
	}
	return nil
}

// readLine reads byte by byte: what follows the line belongs to the connection.
func readLine(r io.Reader) ([]byte, error) {
	var line bytes.Buffer
	b := make([]byte, 1)
	for line.Len() < wire.MaxEgressLine {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			return line.Bytes(), nil
		}
		line.WriteByte(b[0])
	}
	return nil, errors.New("the answer is too long")
}
