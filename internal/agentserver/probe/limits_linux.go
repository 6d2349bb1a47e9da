package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
)

// maxProcesses bounds what may be asked for.
const maxProcesses = 5000

// processes starts processes that do nothing until one is refused, and ends them.
func processes(ctx context.Context, most int) (any, error) {
	runtime.LockOSThread() // their end is tied to that of this thread
	defer runtime.UnlockOSThread()
	var pids []int
	defer func() {
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // a child of ours that has not been waited for
		}
		for _, pid := range pids {
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}()
	for range min(most, maxProcesses) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		pid, errno := cloneAndWait()
		if errno != 0 {
			return wire.Tried{Done: len(pids), Error: errName(errno)}, nil
		}
		pids = append(pids, int(pid))
	}
	return wire.Tried{Done: len(pids)}, nil
}

// cloneAndWait makes a process that waits to be killed, at the latest when this thread ends.
// It is a copy of a program of many threads, and so makes raw system calls only.
//
//go:noinline
//go:norace
func cloneAndWait() (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// memory has a child use memory, so that the child is what ends where there is too little.
func (p *prober) memory(ctx context.Context, mib int) (any, error) {
	err := exec.CommandContext(ctx, p.self, HogWord, strconv.Itoa(mib)).Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return wire.Tried{Done: mib}, nil
	case !errors.As(err, &exit):
		return nil, err
	}
	return wire.Tried{Error: exit.String()}, nil
}

// Hog uses as many MiB as text says, and returns the exit code.
func Hog(text string) int {
	mib, err := strconv.Atoi(text)
	if err != nil || mib < 1 || mib > 1<<20 {
		return 2
	}
	// The first to be ended where there is too little. Nobody is asked for leave.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	all, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 3
	}
	for i := 0; i < len(all); i += os.Getpagesize() {
		all[i] = 1
	}
	return 0
}

// busyTime is how long threads are kept busy.
const busyTime = 500 * time.Millisecond

// cpuTime keeps threads busy and tells how much of the processors they got.
func cpuTime(ctx context.Context, threads int) (any, error) {
	if threads < 1 || threads > 64 {
		return nil, fmt.Errorf("%d threads", threads)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads + 1))
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	before, began := used(), time.Now()
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for ctx.Err() == nil {
				for range 10_000 {
				}
			}
		})
	}
	all.Wait()
	return wire.CPUTime{Used: (used() - before).Seconds(), Wall: time.Since(began).Seconds()}, nil
}

// used is the time that this process has had on processors.
func used() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
