package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Stdio is what a command is connected to. Every field may be zero.
type Stdio struct {
	In       io.Reader        // nil: empty
	Out, Err io.Writer        // nil: dropped
	Resize   <-chan [2]uint16 // rows and columns of the terminal
	Signals  <-chan string    // names ("SIGINT") for the process group
}

// killTime is how long Exec waits, after its context has ended, for PID 1 to say
// that the process group is dead.
const killTime = 2 * time.Second

// Exec runs one command as the agent's uid and returns its exit code: 128+n after
// signal n. The error is set when the command was not started or its end is not
// known. When ctx ends, or Out or Err fails, the command's process group is killed.
//
// A read of In may be going on when Exec returns, as nothing can interrupt it; what
// it yields is lost.
func (c *Client) Exec(ctx context.Context, command wire.Command, stdio Stdio) (int, error) {
	return c.remote("agent.Exec").Exec(ctx, command, stdio)
}

// ArchiveOut writes the file or directory at path, as a tar stream, to w.
func (c *Client) ArchiveOut(ctx context.Context, path string, w io.Writer) error {
	return c.remote("agent.Archive").ArchiveOut(ctx, path, w)
}

// ArchiveIn extracts the tar stream r into the directory at path.
func (c *Client) ArchiveIn(ctx context.Context, path string, r io.Reader) error {
	return c.remote("agent.Archive").ArchiveIn(ctx, path, r)
}

func (c *Client) remote(op string) Remote {
	return Remote{Open: func(ctx context.Context, service string) (net.Conn, error) { return c.open(ctx, op, service) }}
}

// Remote does what a [Client] does with single streams, over streams that somebody
// else opens: the owner of the run, for a process that has no link of its own.
type Remote struct {
	// Open opens a stream to a service of PID 1. Closing the stream ends what the
	// service does for it.
	Open func(ctx context.Context, service string) (net.Conn, error)
}

// Exec is [Client.Exec].
func (r Remote) Exec(ctx context.Context, command wire.Command, stdio Stdio) (int, error) {
	exit, err := r.run(ctx, "agent.Exec", wire.ServiceExec, command, stdio)
	if err != nil {
		return -1, err
	}
	if exit.Error != "" {
		kind := errs.Internal
		if exit.Code == 127 {
			kind = errs.NotFound
		}
		return exit.Code, errs.New("agent.Exec", kind, "", "%s", safe(exit.Error))
	}
	return exit.Code, nil
}

// ArchiveOut is [Client.ArchiveOut].
func (r Remote) ArchiveOut(ctx context.Context, path string, w io.Writer) error {
	return r.archive(ctx, wire.Archive{Path: path}, Stdio{Out: w})
}

// ArchiveIn is [Client.ArchiveIn].
func (r Remote) ArchiveIn(ctx context.Context, path string, in io.Reader) error {
	return r.archive(ctx, wire.Archive{Path: path, Extract: true}, Stdio{In: in})
}

func (r Remote) archive(ctx context.Context, request wire.Archive, stdio Stdio) error {
	words := &head{left: 1024}
	stdio.Err = words
	exit, err := r.run(ctx, "agent.Archive", wire.ServiceArchive, request, stdio)
	if err != nil {
		return err
	}
	if exit.Code == 0 && exit.Error == "" {
		return nil
	}
	reason := exit.Error
	if reason == "" {
		reason = words.String()
	}
	return errs.New("agent.Archive", errs.Internal, "look there: insightscli exec RUN -- ls -la "+request.Path,
		"transfer %q: %s", request.Path, safe(reason))
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.left -= n
	h.Buffer.Write(p[:n])
	return len(p), nil
}

// run makes one exec or archive stream and sees it to its end.
func (r Remote) run(ctx context.Context, op, service string, request any, stdio Stdio) (wire.Exit, error) {
	conn, err := r.Open(ctx, service)
	if err != nil {
		return wire.Exit{}, err
	}
	var controls sync.WaitGroup
	defer controls.Wait()
	defer func() { _ = conn.Close() }() // before the wait: it ends writes
	w := wire.NewStreamWriter(conn)
	if err := w.Line(request); err != nil {
		return wire.Exit{}, lost(op, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &execution{conn: conn, w: w, stdio: stdio, fail: cancel, credit: make(chan int, 1)}
	// Closing our half tells PID 1 to kill the process group; what it says to that
	// can still be read.
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetReadDeadline(time.Now().Add(killTime))
		_ = conn.Close()
	})
	defer stop()
	controls.Go(func() { x.controls(ctx) })
	go x.input(ctx) // not waited for: see Exec
	exit, err := x.output(ctx)
	switch {
	case ctx.Err() != nil:
		return wire.Exit{}, fmt.Errorf("%s: %w", service, context.Cause(ctx))
	case errors.Is(err, wire.ErrFrame):
		return wire.Exit{}, errs.New(op, errs.Internal, "", "%w", err)
	case err != nil:
		return wire.Exit{}, lost(op, err)
	}
	exit.Code = min(max(exit.Code, 0), 255)
	return exit, nil
}

// execution is one exec or archive stream.
type execution struct {
	conn   net.Conn
	w      *wire.StreamWriter
	stdio  Stdio
	fail   context.CancelCauseFunc // ends the command for a reason of ours
	credit chan int                // input that PID 1 has consumed, summed up while nobody takes it
}

// output takes what PID 1 sends until the exit.
func (x *execution) output(ctx context.Context) (wire.Exit, error) {
	r := wire.NewStreamReader(x.conn)
	for {
		t, p, err := r.Next()
		if err != nil {
			return wire.Exit{}, err
		}
		switch t {
		case wire.StreamOutput:
			x.write(ctx, x.stdio.Out, p)
		case wire.StreamError:
			x.write(ctx, x.stdio.Err, p)
		case wire.StreamCredit:
			n, err := wire.ParseCredit(p)
			if err != nil {
				return wire.Exit{}, err
			}
			x.addCredit(n)
		case wire.StreamExit:
			return wire.ParseExit(p)
		case wire.StreamInput, wire.StreamEOF, wire.StreamResize, wire.StreamSignal:
			return wire.Exit{}, fmt.Errorf("%w: piece of type %d from the sandbox", wire.ErrFrame, t)
		}
	}
}

// write passes output on, unless the command is over for us already.
func (x *execution) write(ctx context.Context, w io.Writer, p []byte) {
	if w == nil || ctx.Err() != nil {
		return
	}
	if _, err := w.Write(p); err != nil {
		x.fail(fmt.Errorf("write the command's output: %w", err))
	}
}

// addCredit never blocks: output is the only one that adds.
func (x *execution) addCredit(n int) {
	select {
	case old := <-x.credit:
		n += old
	default:
	}
	x.credit <- min(n, wire.InputWindow)
}

// input sends In as far as the window allows, and its end.
func (x *execution) input(ctx context.Context) {
	window := wire.InputWindow
	buf := make([]byte, wire.MaxChunk)
	for x.stdio.In != nil {
		for window < len(buf) {
			select {
			case n := <-x.credit:
				window = min(window+n, wire.InputWindow)
			case <-ctx.Done():
				return
			}
		}
		n, err := x.stdio.In.Read(buf)
		if ctx.Err() != nil {
			return
		}
		if n > 0 && x.w.Write(wire.StreamInput, buf[:n]) != nil {
			return // the reader of the stream reports it
		}
		window -= n
		if err != nil && !errors.Is(err, io.EOF) {
			x.fail(fmt.Errorf("read the command's input: %w", err))
			return
		}
		if err != nil {
			break
		}
	}
	_ = x.w.Write(wire.StreamEOF, nil)
}

// controls passes on signals and sizes of the terminal.
func (x *execution) controls(ctx context.Context) {
	resize, signals := x.stdio.Resize, x.stdio.Signals
	for {
		var err error
		select {
		case size, ok := <-resize:
			if !ok {
				resize = nil
				continue
			}
			err = x.w.Resize(size[0], size[1])
		case name, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			err = x.w.Write(wire.StreamSignal, []byte(name))
		case <-ctx.Done():
			return
		}
		if err != nil {
			return // the reader of the stream reports it
		}
	}
}
