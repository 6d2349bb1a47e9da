package mcp

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/secret"
)

// How long a server's process may take to end: after the end of its input, and then
// after the signal that asks it to.
const endTime = 2 * time.Second

// maxTail is how much of a process's error output is kept, in bytes.
const maxTail = 2 << 10

// processDialer starts a server on this machine, which speaks over its standard
// streams. The process begins in an empty directory: a server that looks for files of
// a project must be told where they are.
func processDialer(command []string, environ []string, env map[string]secret.String) dialer {
	return func(ctx context.Context) (*pipe, error) {
		dir, err := os.MkdirTemp("", "insightscli-mcp-")
		if err != nil {
			return nil, err
		}
		// The process outlives the call that starts it; the hub ends it.
		cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, slices.Clone(environ)
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v.Reveal())
		}
		p, err := startProcess(cmd)
		if err != nil {
			_ = os.Remove(dir)
			return nil, err
		}
		return &pipe{
			transport: &sdk.IOTransport{Reader: io.NopCloser(&messages{in: bufio.NewReader(p.out)}), Writer: p.in, MaxLineLength: maxAnswer},
			kill:      func() { p.end(); _ = os.RemoveAll(dir) },
			said:      p.tail.String,
		}, nil
	}
}

// process is a running server.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	tail   *tail
	exited chan struct{}
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, tail: &tail{}, exited: make(chan struct{})}
	// Pipes of our own: Wait must not close the output before it was read.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, p.tail
	cmd.WaitDelay = endTime // a grandchild may hold the error output open
	ownGroup(cmd)
	if p.in, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	p.out = r
	go func() {
		defer close(p.exited)
		_ = cmd.Wait()
	}()
	return p, nil
}

// end ends the process and what it started, and returns when it is gone: by the end of
// its input, else by a signal, else by force.
func (p *process) end() {
	_ = p.in.Close()
	for _, force := range []bool{false, true} {
		if p.gone(endTime) {
			break
		}
		signalGroup(p.cmd.Process, force)
	}
	<-p.exited
	signalGroup(p.cmd.Process, true) // what it left behind
	if c, ok := p.out.(io.Closer); ok {
		_ = c.Close()
	}
}

func (p *process) gone(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - maxTail; extra > 0 {
		t.buf = slices.Delete(t.buf, 0, extra)
	}
	return len(p), nil
}

// String returns the last lines as one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(t.buf), ""), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.Join(lines, " | "))
	return cut(strings.TrimSpace(clean), 500)
}
