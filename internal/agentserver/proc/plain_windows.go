package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
)

// modesMeanNothing: files have no executable bits here.
const modesMeanNothing = true

// Reaper waits for processes. Windows has no orphans to reap, so that there is one
// kind.
type Reaper struct{ running sync.WaitGroup }

// NewReaper returns a Reaper.
func NewReaper() *Reaper { return &Reaper{} }

// Close waits until the last child has ended. Kill them before.
func (r *Reaper) Close() { r.running.Wait() }

// Plain is a [Starter] that isolates nothing, for the memory provider and tests.
type Plain struct {
	Reaper   *Reaper
	UID, GID int // not used on Windows
}

var _ Starter = (*Plain)(nil)

// Start implements [Starter]. There are no process groups that a signal reaches:
// every signal ends the process itself.
func (p *Plain) Start(ctx context.Context, spec Spec) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := LookPath(spec)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	files := []*os.File{spec.Stdin, spec.Stdout, spec.Stderr}
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	process, err := os.StartProcess(path, spec.Argv, &os.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files})
	if err != nil {
		return nil, ExecError(spec.Argv[0], err)
	}
	c := &Child{pid: process.Pid, done: make(chan struct{})}
	c.signal = func(syscall.Signal) error { return ignoreDone(process.Kill()) }
	p.Reaper.running.Go(func() {
		c.exit = Exit{Code: 1}
		if state, err := process.Wait(); err == nil {
			c.exit.Code = state.ExitCode()
		}
		close(c.done)
	})
	return c, nil
}

// ignoreDone drops the error of a signal to a process that has ended.
func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// SignalName returns the name of the few signals that exist here, or "".
func SignalName(sig syscall.Signal) string {
	for name, s := range signals() {
		if s == sig {
			return name
		}
	}
	return ""
}

// SignalByName is the reverse of [SignalName]; 0 means there is none of that name.
func SignalByName(name string) syscall.Signal { return signals()[strings.ToUpper(name)] }

func signals() map[string]syscall.Signal {
	return map[string]syscall.Signal{
		"SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT,
		"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM,
	}
}
