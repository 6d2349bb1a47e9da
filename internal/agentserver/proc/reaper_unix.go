//go:build unix

package proc

import (
	"errors"
	"sync"
	"syscall"
)

// Reaper waits for processes. There are two kinds: one that reaps only what it
// started, for a server inside another program, and one for PID 1, which must reap
// every orphan of its namespace as well and therefore owns wait4(-1).
type Reaper struct {
	all bool

	mu       sync.Mutex // guards the rest; held while a process is forked
	children map[int]*Child
	started  *sync.Cond
	closed   bool
	running  sync.WaitGroup
}

// NewReaper returns a Reaper of its own children only.
func NewReaper() *Reaper { return newReaper(false) }

// NewInit returns the Reaper of PID 1. It begins to reap at once. Nothing else in
// the process may wait for a child.
func NewInit() *Reaper {
	r := newReaper(true)
	r.running.Go(r.reapAll)
	return r
}

func newReaper(all bool) *Reaper {
	r := &Reaper{all: all, children: map[int]*Child{}}
	r.started = sync.NewCond(&r.mu)
	return r
}

// Start calls fork, which returns the process id of a new process that leads its
// own group, and registers it before its end can be seen. fork must not wait.
// Forks are made one at a time.
func (r *Reaper) Start(fork func() (pid int, err error)) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := fork()
	if err != nil {
		return nil, err
	}
	c := &Child{pid: pid, done: make(chan struct{}), signal: func(sig syscall.Signal) error { return signalGroup(pid, sig) }}
	if r.all {
		r.children[pid] = c
		r.started.Broadcast()
		return c, nil
	}
	r.running.Go(func() { c.finish(waitFor(pid)) })
	return c, nil
}

// Close waits until the last child has been reaped. Kill them before.
func (r *Reaper) Close() {
	r.mu.Lock()
	r.closed = true
	r.started.Broadcast()
	r.mu.Unlock()
	r.running.Wait()
}

// reapAll is the one caller of wait4(-1). It blocks in the system call rather than
// on SIGCHLD, so that it works whatever becomes of the signal handlers of PID 1.
func (r *Reaper) reapAll() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: without a child there is no orphan either
			if !r.awaitStart() {
				return
			}
		default:
			r.deliver(pid, status)
		}
	}
}

// awaitStart blocks until there is a child again; false means there will be none.
func (r *Reaper) awaitStart() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.children) == 0 && !r.closed {
		r.started.Wait()
	}
	return len(r.children) > 0
}

// deliver tells the one who waits for pid. An orphan has nobody. The lock makes it
// wait for a Start that has forked pid and not yet registered it.
func (r *Reaper) deliver(pid int, status syscall.WaitStatus) {
	r.mu.Lock()
	c := r.children[pid]
	delete(r.children, pid)
	r.mu.Unlock()
	if c != nil {
		c.finish(status)
	}
}

// waitFor reaps one process.
func waitFor(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}

func (c *Child) finish(status syscall.WaitStatus) {
	c.exit = Exit{Code: status.ExitStatus()}
	if status.Signaled() {
		c.exit = Exit{Code: 128 + int(status.Signal()), Signal: status.Signal()}
	}
	close(c.done)
}

// signalGroup signals the group that pid leads. The kernel does not give a number
// to a new process while a group bears it.
func signalGroup(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
