package agentserver

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// killTime bounds the wait for a process that was killed.
const killTime = 5 * time.Second

// endOfTransmission is what a terminal takes for the end of input (VEOF).
const endOfTransmission = 0x04

// serveExec runs one command of the host as the agent.
func (s *Server) serveExec(ctx context.Context, conn net.Conn) error {
	p := newPiped(s.starter, conn)
	var cmd wire.Command
	if err := p.r.Line(&cmd); err != nil {
		return err
	}
	env, err := s.commandEnv(cmd)
	if err != nil {
		return p.refuse(err)
	}
	spec := proc.Spec{Argv: cmd.Argv, Dir: cmd.Dir, Env: env}
	if spec.Dir == "" {
		spec.Dir = s.boot.Dir
	}
	s.log.Debug("exec", "program", first(cmd.Argv), "tty", cmd.TTY)
	if cmd.TTY {
		return p.runTTY(ctx, spec, s.boot, cmd)
	}
	return p.run(ctx, spec, p.w.To(wire.StreamError), nil)
}

func first(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return argv[0]
}

// piped is a process whose streams are pieces of one stream of the link.
type piped struct {
	starter proc.Starter
	conn    net.Conn
	r       *wire.StreamReader
	w       *wire.StreamWriter
	input   *wire.Input
	resize  func(rows, cols uint16)
	work    sync.WaitGroup
}

func newPiped(starter proc.Starter, conn net.Conn) *piped {
	w := wire.NewStreamWriter(conn)
	return &piped{
		starter: starter, conn: conn, r: wire.NewStreamReader(conn), w: w,
		input: wire.NewInput(w.Credit), resize: func(_, _ uint16) {},
	}
}

// run runs spec with three pipes. Its standard error goes to errTo; explain, where
// there is one, gives the reason of an exit that is not 0.
func (p *piped) run(ctx context.Context, spec proc.Spec, errTo io.Writer, explain func() string) error {
	var pipes pipeSet
	defer pipes.close()
	in, out, errs := pipes.input(), pipes.output(), pipes.output()
	if pipes.err != nil {
		return p.refuse(pipes.err)
	}
	spec.Stdin, spec.Stdout, spec.Stderr = in.child, out.child, errs.child
	child, err := p.starter.Start(ctx, spec)
	pipes.started()
	if err != nil {
		return p.refuse(err)
	}
	tails := []*tail{newTail(out.ours), newTail(errs.ours)}
	var outputs sync.WaitGroup
	outputs.Go(func() { copyOut(tails[0], p.w.To(wire.StreamOutput)) })
	outputs.Go(func() { copyOut(tails[1], errTo) })
	p.work.Go(func() { p.feed(in.write, nil) })
	p.work.Go(func() { p.control(child) })

	exit := child.Exit()
	_ = in.write.Close()
	for _, t := range tails {
		t.end()
	}
	outputs.Wait()
	last := wireExit(exit)
	if explain != nil && exit.Code != 0 {
		last.Error = explain()
	}
	return p.finish(last)
}

// runTTY runs spec on a terminal of its own.
func (p *piped) runTTY(ctx context.Context, spec proc.Spec, boot wire.Boot, cmd wire.Command) error {
	master, slave, err := openTTY(boot.UID, boot.GID)
	if err != nil {
		return p.refuse(err)
	}
	defer func() { _ = master.Close() }()
	p.resize = func(rows, cols uint16) { setSize(master, rows, cols) }
	p.resize(cmd.Rows, cmd.Cols)
	spec.Stdin, spec.Stdout, spec.Stderr, spec.TTY = slave, slave, slave, true
	child, err := p.starter.Start(ctx, spec)
	_ = slave.Close()
	if err != nil {
		return p.refuse(err)
	}
	t := newTail(master)
	p.work.Go(func() { copyOut(t, p.w.To(wire.StreamOutput)) })
	p.work.Go(func() { p.feed(keepOpen{master}, []byte{endOfTransmission}) })
	var control sync.WaitGroup
	control.Go(func() { p.control(child) })

	exit := child.Exit()
	t.end()
	_ = p.input.Close()
	_ = master.SetWriteDeadline(time.Now()) // nobody reads what is typed now
	p.work.Wait()
	err = p.finish(wireExit(exit))
	control.Wait()
	return err
}

// keepOpen hides Close: the master of a terminal is closed when its output has been
// read.
type keepOpen struct{ *os.File }

func (keepOpen) Close() error { return nil }

// feed writes the host's input to the process, then end, and closes it. When the
// process takes no more the rest is thrown away, so that the host can go on.
func (p *piped) feed(to io.WriteCloser, end []byte) {
	_, err := io.Copy(to, p.input)
	if err == nil && len(end) > 0 {
		_, _ = to.Write(end)
	}
	_ = to.Close()
	_, _ = io.Copy(io.Discard, p.input)
}

// control reads what the host says until the stream ends. An end before the
// process's own means that nobody wants it any more.
func (p *piped) control(child *proc.Child) {
	defer func() { _ = p.input.Close() }()
	for {
		kind, data, err := p.r.Next()
		if err != nil {
			abandon(child)
			return
		}
		switch kind {
		case wire.StreamInput:
			if p.input.Push(data) != nil { // the window was overrun: the other side is out of its mind
				abandon(child)
				return
			}
		case wire.StreamEOF:
			_ = p.input.Close()
		case wire.StreamResize:
			if rows, cols, err := wire.ParseResize(data); err == nil {
				p.resize(rows, cols)
			}
		case wire.StreamSignal:
			if sig := proc.SignalByName(string(data)); sig != 0 {
				_ = child.Signal(sig)
			}
		}
	}
}

// abandon kills the group of a process that is still running. What a process that has
// ended left behind on purpose lives on.
func abandon(child *proc.Child) {
	select {
	case <-child.Done():
	default:
		child.End(killTime)
	}
}

// refuse ends the stream when nothing was started.
func (p *piped) refuse(err error) error {
	return p.w.Exit(wire.Exit{Code: proc.Code(err), Error: err.Error()})
}

// finish sends the exit and ends everything that still reads of the stream.
func (p *piped) finish(e wire.Exit) error {
	err := p.w.Exit(e)
	_ = p.conn.SetReadDeadline(time.Unix(1, 0))
	_ = p.input.Close()
	p.work.Wait()
	return err
}

func wireExit(e proc.Exit) wire.Exit {
	return wire.Exit{Code: e.Code, Signal: proc.SignalName(e.Signal)}
}

// copyOut copies a stream of a process to its end. When the host takes no more the
// rest is thrown away, so that the process can end.
func copyOut(t *tail, to io.Writer) {
	buf := make([]byte, wire.MaxChunk)
	for {
		n, err := t.read(buf, time.Time{})
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				to = io.Discard
			}
		}
		if err != nil {
			return
		}
	}
}
