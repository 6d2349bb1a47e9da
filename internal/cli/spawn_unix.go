//go:build !windows

package cli

import (
	"os"
	"strconv"
	"syscall"
)

// ownSession gives a process a session of its own, so that the end of a terminal
// does not reach it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// keepDescriptors keeps what this process was started with, beside its three streams,
// from what it starts: a reader at the other end of a pipe would wait for a runner to
// end that has nothing to do with it. Our own are never passed on.
func keepDescriptors() {
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // no such list here
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
