// Package proc starts and reaps the processes of the agent. It is the only way by
// which the agent server makes a process: a [Starter] forks, a [Reaper] owns wait4,
// and a [Child] is what both give to those who wait and signal.
//
// Invariants: every process leads its own session and process group, and signals go
// to the group; nobody but the Reaper waits for a process, so os/exec's Wait, which
// would race with a PID 1 that reaps everything, is not used anywhere below
// agentserver. The package does not know namespaces or capabilities: package jail
// has the Starter that does.
package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Spec is one process of the agent.
type Spec struct {
	// Argv[0] is a path, or a name that is looked up in the PATH of Env as the
	// agent's uid ([LookPath]). A relative path is relative to Dir.
	Argv []string
	Env  []string // the whole environment
	Dir  string   // working directory
	// Stdin, Stdout and Stderr are the child's ends; nil is the null device. The
	// caller closes them after Start.
	Stdin, Stdout, Stderr *os.File
	// TTY makes Stdin, which is a terminal, the controlling terminal.
	TTY bool
}

// Starter starts processes of the agent's uid. It may be used by several
// goroutines at once.
type Starter interface {
	// Start returns when the program runs. An error that wraps [ErrNotFound] or
	// [ErrNotExecutable] is about the program, not about us.
	Start(ctx context.Context, spec Spec) (*Child, error)
}

// The errors of [Starter.Start] that are the user's to see.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("not executable")
)

// Code returns the shell's exit code for a process that Start did not start: 127,
// or 126 where it exists and cannot run.
func Code(err error) int {
	if errors.Is(err, ErrNotFound) {
		return 127
	}
	return 126
}

// ExecError turns the error of an exec of name into one that wraps [ErrNotFound] or
// [ErrNotExecutable], and leaves every other as it is.
func ExecError(name string, err error) error {
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrNotExecutable):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		// Also when the file exists and the interpreter of its first line does not.
		return &programError{name, ErrNotFound, ""}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return &programError{name, ErrNotExecutable, ": " + cause(err)}
	case errors.Is(err, syscall.ENOEXEC):
		return &programError{name, ErrNotExecutable, ": neither a program for this machine nor a script with a #! line"}
	}
	return err
}

type programError struct {
	name  string
	kind  error
	extra string
}

func (e *programError) Error() string { return e.name + ": " + e.kind.Error() + e.extra }
func (e *programError) Unwrap() error { return e.kind }

// cause is the text of the innermost errno of err.
func cause(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // as a shell gives it: 128+n after signal n
	Signal syscall.Signal // 0 when it exited by itself
}

// Child is one started process and its group.
type Child struct {
	pid    int
	done   chan struct{}
	exit   Exit // set before done is closed
	signal func(syscall.Signal) error
}

// PID returns the process id, which is also the id of its group and session.
func (c *Child) PID() int { return c.pid }

// Done is closed when the process itself has ended; others of its group may live on.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit returns how it ended. It waits for the end.
func (c *Child) Exit() Exit {
	<-c.done
	return c.exit
}

// Signal sends sig to the process group. A group of which nothing is left is no
// error.
func (c *Child) Signal(sig syscall.Signal) error { return c.signal(sig) }

// End sends each of signals in turn, waits up to grace after each for the process
// to end, and then kills what is left of the group. It returns at once when the
// process had ended before.
func (c *Child) End(grace time.Duration, signals ...syscall.Signal) {
	for _, sig := range signals {
		select {
		case <-c.done:
		default:
			_ = c.signal(sig)
			c.Wait(grace)
		}
	}
	_ = c.signal(syscall.SIGKILL)
	c.Wait(grace)
}

// Wait returns when the process has ended, or after d.
func (c *Child) Wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
	}
}
