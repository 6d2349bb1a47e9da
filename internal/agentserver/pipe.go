package agentserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// tailBytes is how much of the standard error of an agent's program is kept.
const tailBytes = 16 << 10

// Program finds the program of an agent: the image's own, in the agent's PATH, else the
// one that was mounted from the host under that name; the other way round if
// preferMounted. Where there is neither, the returned name is not a path, and starting
// it fails as that of a missing command does.
func (h *Host) Program(name string, preferMounted bool) string {
	inPath, err := h.lookPath(name)
	found := err == nil
	mounted := mountedProgram(name)
	switch {
	case found && (mounted == "" || !preferMounted):
		return inPath
	case mounted != "":
		return mounted
	}
	return name
}

// lookPath looks as the agent, whose directories we may not see.
func (h *Host) lookPath(name string) (found string, err error) {
	err = proc.As(h.uid, h.gid, func() error {
		found, err = proc.LookPath(proc.Spec{Argv: []string{name}, Dir: h.Dir, Env: h.Env})
		return err
	})
	return found, err
}

// mountedProgram is the program that was mounted from the host, or "". A directory has
// it in its bin.
func mountedProgram(name string) string {
	mounted := path.Join(wire.ProgramsDir, name)
	info, err := os.Stat(mounted) // ours: the agent cannot write there
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return path.Join(mounted, "bin", name)
	}
	return mounted
}

// Pipe is a program of the agent with which a driver talks over its standard streams.
type Pipe struct {
	In io.WriteCloser
	// Out ends with the program: where a grandchild goes on holding it, after two silent
	// seconds. Close ends it too.
	Out   io.Reader
	Child *proc.Child

	errs *ring
	once sync.Once
	set  pipeSet
	work sync.WaitGroup
	read chan struct{} // closed when the standard error has been read to its end
}

// Pipe starts a program in dir with env, the whole of it. Call [Pipe.Close] when done.
func (h *Host) Pipe(ctx context.Context, argv []string, dir string, env []string) (*Pipe, error) {
	p := &Pipe{errs: &ring{}, read: make(chan struct{})}
	in, out, errs := p.set.input(), p.set.output(), p.set.output()
	if p.set.err != nil {
		p.set.close()
		return nil, fmt.Errorf("make a pipe: %w", p.set.err)
	}
	child, err := h.Starter.Start(ctx, proc.Spec{
		Argv: argv, Dir: dir, Env: env, Stdin: in.child, Stdout: out.child, Stderr: errs.child,
	})
	p.set.started()
	if err != nil {
		p.set.close()
		return nil, err
	}
	said, told := newTail(out.ours), newTail(errs.ours)
	p.In, p.Out, p.Child = in.write, tailReader{said}, child
	p.work.Go(func() {
		defer close(p.read)
		_, _ = io.Copy(p.errs, tailReader{told})
	})
	p.work.Go(func() {
		<-child.Done()
		said.end()
		told.end()
	})
	return p, nil
}

// tailReader is a tail as an io.Reader.
type tailReader struct{ *tail }

// Read implements io.Reader.
func (t tailReader) Read(p []byte) (int, error) {
	for {
		if n, err := t.read(p, time.Time{}); n > 0 || err != nil {
			return n, err
		}
	}
}

// Tail is the last of what the program wrote to its standard error, all of it where the
// program has ended.
func (p *Pipe) Tail() string {
	select {
	case <-p.Child.Done():
		<-p.read // bounded: the tail ends soon after the program
	default:
	}
	return p.errs.String()
}

// Close ends the program: its input first, then by signals, each with grace to obey. It
// may be called again, also while the first call is at work.
func (p *Pipe) Close(grace time.Duration, signals ...syscall.Signal) {
	p.once.Do(func() {
		_ = p.In.Close()
		p.Child.Wait(grace)
		p.Child.End(grace, signals...)
		p.set.close()
		select {
		case <-p.Child.Done():
			p.work.Wait()
		default: // a process that does not die: the kernel holds it, and its waiter
		}
	})
}

// ring keeps the last bytes that are written to it.
type ring struct {
	mu  sync.Mutex // guards the rest
	buf []byte
	cut bool // something before buf is gone
}

// Write implements io.Writer.
func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p[max(0, len(p)-tailBytes):]...)
	if over := len(r.buf) - tailBytes; over > 0 || len(p) > tailBytes {
		r.buf, r.cut = append(r.buf[:0], r.buf[max(0, over):]...), true
	}
	return len(p), nil
}

// String returns what was kept, as text, without the line whose beginning is gone.
func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.buf
	if _, rest, found := bytes.Cut(kept, []byte{'\n'}); r.cut && found && len(bytes.TrimSpace(rest)) > 0 {
		kept = rest
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(kept)), "?")
}
