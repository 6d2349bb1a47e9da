package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is PID 1 of a sandbox, held by a descriptor that cannot come to mean
// another process.
type process struct {
	pid int
	fd  *os.File // pidfd, non-blocking, readable once the process has ended
}

// findProcess returns the process of a record, or nil when it is gone.
func findProcess(r record) (*process, error) {
	if r.PID == 0 || r.BootID != bootID() {
		return nil, nil
	}
	fd, err := unix.PidfdOpen(r.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	p := &process{pid: r.PID, fd: os.NewFile(uintptr(fd), "pidfd")}
	// The number may have been given to another process before it was opened.
	if start, err := startTime(r.PID); err != nil || start != r.Start {
		return nil, p.fd.Close()
	}
	return p, nil
}

// ended reports whether the process has ended, without waiting.
func (p *process) ended() bool {
	ended := true
	_ = p.control(func(fd uintptr) error { ended = readable(fd); return nil })
	return ended
}

// control calls f with the descriptor, without changing its mode as File.Fd does.
func (p *process) control(f func(fd uintptr) error) error {
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = f(fd) })
	return errors.Join(err, inner)
}

func readable(fd uintptr) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// wait returns when the process has ended or ctx is done.
func (p *process) wait(ctx context.Context) error {
	// More than one caller may wait, and a deadline belongs to a file.
	var f *os.File
	err := p.control(func(fd uintptr) error {
		own, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			f = os.NewFile(uintptr(own), "pidfd")
		}
		return os.NewSyscallError("dup", err)
	})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(readable)
	if ctx.Err() != nil && !p.ended() {
		return context.Cause(ctx)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func (p *process) kill() error {
	return p.control(func(fd uintptr) error {
		err := unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return os.NewSyscallError("pidfd_send_signal", err)
	})
}

// reap takes the exit code of a process that has ended, or returns -1 when it is
// not our child, or was reaped before.
func (p *process) reap() int {
	ours := p.control(func(fd uintptr) error {
		return unix.Waitid(unix.P_PIDFD, int(fd), nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	if ours != nil {
		return -1
	}
	var status unix.WaitStatus
	pid, err := unix.Wait4(p.pid, &status, unix.WNOHANG, nil)
	switch {
	case err != nil || pid != p.pid:
		return -1
	case status.Signaled():
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// startTime returns when a process began, in clock ticks after boot.
func startTime(pid int) (uint64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold spaces and parentheses.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	const startField = 19 // 22 of proc(5), counted from the state
	if len(fields) <= startField {
		return 0, fmt.Errorf("/proc/%d/stat is cut short", pid)
	}
	return strconv.ParseUint(fields[startField], 10, 64)
}

// bootID names this boot of this machine.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
