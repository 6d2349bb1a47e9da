package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// sshDialer returns a dialer whose connections are the stdio of
// `ssh HOST docker system dial-stdio`, as the docker command makes them. It never
// asks for a password: without a key or an agent the error says so.
func sshDialer(host, program string) (func(context.Context, string, string) (net.Conn, error), error) {
	u, err := url.Parse(host)
	name := ""
	if err == nil {
		name = u.Hostname()
	}
	if name == "" || strings.HasPrefix(name, "-") || u.Path != "" && u.Path != "/" {
		return nil, errs.New("docker.Connect", errs.Config, "use ssh://user@host",
			"%q is not the address of an engine behind ssh", host)
	}
	if program == "" {
		program = "ssh"
	}
	args := []string{"-o", "BatchMode=yes", "-o", fmt.Sprintf("ConnectTimeout=%d", int(dialTimeout.Seconds())), "-T"}
	if user := u.User.Username(); user != "" {
		args = append(args, "-l", user)
	}
	if u.Port() != "" {
		args = append(args, "-p", u.Port())
	}
	args = append(args, "--", name, "docker", "system", "dial-stdio")
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return dialCommand(program, args...)
	}, nil
}

// commandConn is a connection over the stdio of a process. It ends with Close.
type commandConn struct {
	cmd    *exec.Cmd
	in     *os.File // what the process writes
	out    *os.File // what the process reads
	stderr tail
	ended  func() error // waits for the process, once
}

func dialCommand(program string, args ...string) (_ net.Conn, err error) {
	childIn, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), out.Close())
	}
	c := &commandConn{in: in, out: out, cmd: exec.Command(program, args...)} //nolint:noctx // it lives as long as the connection
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = childIn, childOut, &c.stderr
	c.ended = sync.OnceValue(c.cmd.Wait)
	err = c.cmd.Start()
	_ = childIn.Close()
	_ = childOut.Close()
	if err != nil {
		_ = in.Close()
		_ = out.Close()
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errs.New("docker.Connect", errs.Unavailable, "install an ssh client, or unset DOCKER_HOST",
				"an engine behind ssh:// needs the ssh command: %w", err)
		}
		return nil, err
	}
	return c, nil
}

// Read implements net.Conn. At the end of the stream the error is what the process
// said on its standard error, if it said anything.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	if err := c.failure(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Write implements net.Conn. A process that ended before it was written to is asked
// for its reason, too: a broken pipe explains nothing.
func (c *commandConn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		if why := c.failure(); why != nil {
			return n, why
		}
	}
	return n, err
}

// failure is what the process failed with, or nil. A process that closed its streams
// is about to end; one that does not within a second is not waited for.
func (c *commandConn) failure() error {
	done := make(chan error, 1)
	go func() { done <- c.ended() }() // ends with the process, which Close kills
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("ssh: %v: %s", err, lastLines(c.stderr.String())) //nolint:errorlint // what it said is the cause, its exit code is not
		}
	case <-time.After(time.Second):
	}
	return nil
}

// CloseWrite ends the process's standard input.
func (c *commandConn) CloseWrite() error { return c.out.Close() }

// Close ends the process and waits for it.
func (c *commandConn) Close() error {
	_ = c.out.Close()
	_ = c.cmd.Process.Kill()
	_ = c.ended()
	return c.in.Close()
}

// LocalAddr implements net.Conn.
func (c *commandConn) LocalAddr() net.Addr { return pipeAddr{} }

// RemoteAddr implements net.Conn.
func (c *commandConn) RemoteAddr() net.Addr { return pipeAddr{} }

// SetDeadline implements net.Conn.
func (c *commandConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *commandConn) SetReadDeadline(t time.Time) error { return c.in.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *commandConn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// maxTail bounds the output that is kept for error messages.
const maxTail = 4 << 10

// tail keeps the last bytes written to it. It may be written and read at the same
// time.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
