//go:build unix

package proc

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// Plain is a [Starter] that isolates nothing: for the memory provider and tests, and
// where the sandbox is a container whose PID 1 has been hardened by its engine.
type Plain struct {
	Reaper *Reaper
	// UID and GID are the agent's. They are applied when the server runs as root;
	// otherwise the agent has the server's own. UID 0 means: do not change.
	UID, GID int
}

var _ Starter = (*Plain)(nil)

// Start implements [Starter].
func (p *Plain) Start(ctx context.Context, spec Spec) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := p.find(spec)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	attr := &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Sys: p.sys(spec.TTY),
		Files: []uintptr{fd(spec.Stdin, null), fd(spec.Stdout, null), fd(spec.Stderr, null)},
	}
	child, err := p.Reaper.Start(func() (int, error) { return syscall.ForkExec(path, spec.Argv, attr) })
	if err != nil {
		return nil, ExecError(spec.Argv[0], err)
	}
	return child, nil
}

// find looks the program up as the agent, who may see directories that a root
// without capabilities may not, and the reverse.
func (p *Plain) find(spec Spec) (path string, err error) {
	err = As(p.UID, p.GID, func() error {
		if _, err := os.Stat(spec.Dir); spec.Dir != "" && err != nil {
			// The fork would say the same in words that blame the program.
			return fmt.Errorf("working directory: %w", err)
		}
		path, err = LookPath(spec)
		return err
	})
	return path, err
}

func (p *Plain) sys(tty bool) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: tty, Ctty: 0}
	if os.Geteuid() == 0 && p.UID != 0 {
		sys.Credential = &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}
	}
	return sys
}

// fd returns the descriptor of f, or of null, made blocking: programs do not expect
// EAGAIN from their streams. Our own end is another description and stays as it is.
func fd(f, null *os.File) uintptr {
	if f == nil {
		f = null
	}
	n := ^uintptr(0)
	raw, err := f.SyscallConn()
	if err != nil {
		return n
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetNonblock(int(fd), false)
		n = fd
	})
	return n
}
