package agentserver

import (
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
	inPath, err := proc.LookPath(proc.Spec{Argv: []string{name}, Dir: h.Dir, Env: h.Env})
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
	In    io.WriteCloser
	Out   io.Reader // of this process only: it may go on after Child has ended, in a grandchild
	Child *proc.Child

	stderr *ring
	once   sync.Once
	files  []*os.File
}

// Pipe starts a program in dir with env, the whole of it. Call [Pipe.Close] when done.
func (h *Host) Pipe(ctx context.Context, argv []string, dir string, env []string) (*Pipe, error) {
	var set pipeFiles
	in, inChild := set.pipe(true)
	out, outChild := set.pipe(false)
	errs, errChild := set.pipe(false)
	if set.err != nil {
		set.close()
		return nil, fmt.Errorf("make a pipe: %w", set.err)
	}
	child, err := h.Starter.Start(ctx, proc.Spec{
		Argv: argv, Dir: dir, Env: env, Stdin: inChild, Stdout: outChild, Stderr: errChild,
	})
	for _, f := range set.childs {
		_ = f.Close()
	}
	if err != nil {
		set.close()
		return nil, err
	}
	p := &Pipe{In: in, Out: out, Child: child, stderr: &ring{}, files: set.ours}
	go func() { _, _ = io.Copy(p.stderr, errs) }() // ends with the last writer, or with Close
	return p, nil
}

// Tail is the last of what the program wrote to its standard error.
func (p *Pipe) Tail() string { return p.stderr.String() }

// Close ends the program: its input first, then by signals, each with grace to obey.
func (p *Pipe) Close(grace time.Duration, signals ...syscall.Signal) {
	p.once.Do(func() {
		_ = p.In.Close()
		p.Child.Wait(grace)
		p.Child.End(grace, signals...)
		for _, f := range p.files {
			_ = f.Close()
		}
	})
}

// pipeFiles makes pipes and remembers the first error.
type pipeFiles struct {
	err          error
	ours, childs []*os.File
}

func (s *pipeFiles) pipe(toChild bool) (ours, child *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		s.err = err
		return nil, nil
	}
	ours, child = r, w
	if toChild {
		ours, child = w, r
	}
	s.ours, s.childs = append(s.ours, ours), append(s.childs, child)
	return ours, child
}

func (s *pipeFiles) close() {
	for _, f := range append(s.ours, s.childs...) {
		_ = f.Close()
	}
}

// ring keeps the last bytes that are written to it.
type ring struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

// Write implements io.Writer.
func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p...)
	if over := len(r.buf) - tailBytes; over > 0 {
		r.buf = append(r.buf[:0], r.buf[over:]...)
	}
	return len(p), nil
}

// String returns what was kept, as text.
func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(r.buf)), "?")
}
