package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// fakePID1 is an agent server that does what a test tells it. The real one is held
// to the same by package sandboxtest.
type fakePID1 struct {
	calls   func(ctx context.Context, q wire.RPCRequest) (any, error)
	events  func(from uint64, w *wire.FrameWriter) error
	exec    func(c wire.Command, r *wire.StreamReader, w *wire.StreamWriter) wire.Exit
	archive func(a wire.Archive, r *wire.StreamReader, w *wire.StreamWriter) wire.Exit
	acks    chan uint64
	conn    net.Conn // PID 1's end of the link
}

// connect starts the fake and connects to it.
func (f *fakePID1) connect(t *testing.T, services map[string]link.Handler) (*Client, *link.Server) {
	t.Helper()
	key, err := link.NewKeys("1b671a64-40d5-491e-99b0-da01ff1f3341")
	if err != nil {
		t.Fatal(err)
	}
	server := link.NewServer(wire.Boot{Run: key.Run, HostKey: key.Public(), Secret: key.Secret}, map[string]link.Handler{
		wire.ServiceRPC:     f.serveRPC,
		wire.ServiceEvents:  f.serveEvents,
		wire.ServiceExec:    f.serveExec,
		wire.ServiceArchive: f.serveArchive,
	})
	a, b := net.Pipe()
	f.conn = b
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeConn(context.WithoutCancel(t.Context()), b)
	}()
	c, err := Connect(t.Context(), a, key, services)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c, server
}

func (f *fakePID1) serveRPC(ctx context.Context, conn net.Conn) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	var mu sync.Mutex
	in := bufio.NewReader(conn)
	for {
		line, err := wire.ReadLine(in, wire.MaxRPC)
		if err != nil {
			return err
		}
		var q wire.RPCRequest
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		calls.Go(func() {
			result, err := f.calls(ctx, q)
			if q.ID == nil {
				return
			}
			answer := wire.RPCResponse{JSONRPC: wire.RPCVersion, ID: q.ID}
			var theirs *wire.RPCError
			switch {
			case errors.As(err, &theirs):
				answer.Error = theirs
			case err != nil:
				answer.Error = &wire.RPCError{Code: wire.CodeExecution, Message: err.Error()}
			default:
				answer.Result, _ = json.Marshal(result)
			}
			b, _ := json.Marshal(answer)
			mu.Lock()
			defer mu.Unlock()
			_, _ = conn.Write(append(b, '\n'))
		})
	}
}

func (f *fakePID1) serveEvents(_ context.Context, conn net.Conn) error {
	in := bufio.NewReader(conn)
	line, err := wire.ReadLine(in, 1024)
	if err != nil {
		return err
	}
	var follow wire.Follow
	if err := json.Unmarshal(line, &follow); err != nil {
		return err
	}
	w := wire.NewFrameWriter(conn)
	if err := f.events(follow.From, w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for {
		var b [8]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return err
		}
		if f.acks != nil {
			f.acks <- beUint64(b)
		}
	}
}

func beUint64(b [8]byte) (n uint64) {
	for _, v := range b {
		n = n<<8 | uint64(v)
	}
	return n
}

func (f *fakePID1) serveExec(_ context.Context, conn net.Conn) error {
	r, w := wire.NewStreamReader(conn), wire.NewStreamWriter(conn)
	var c wire.Command
	if err := r.Line(&c); err != nil {
		return err
	}
	return w.Exit(f.exec(c, r, w))
}

func (f *fakePID1) serveArchive(_ context.Context, conn net.Conn) error {
	r, w := wire.NewStreamReader(conn), wire.NewStreamWriter(conn)
	var a wire.Archive
	if err := r.Line(&a); err != nil {
		return err
	}
	return w.Exit(f.archive(a, r, w))
}

// output returns frames of output, numbered from first to last, then the end.
func output(first, last uint64) func(uint64, *wire.FrameWriter) error {
	return func(_ uint64, w *wire.FrameWriter) error {
		for seq := first; seq < last; seq++ {
			f := wire.Frame{Type: wire.FrameStdout, Seq: seq, Data: fmt.Appendf(nil, "line %d\n", seq)}
			if err := w.Write(&f); err != nil {
				return err
			}
		}
		return w.Write(&wire.Frame{Type: wire.FrameDone, Seq: last, Data: []byte(`{"stopReason":"end_turn"}`)})
	}
}
