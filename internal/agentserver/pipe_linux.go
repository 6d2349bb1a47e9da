package agentserver

import (
	"os"

	"golang.org/x/sys/unix"
)

// outputPipe returns both ends of a pipe that holds pipeSize bytes where the system
// lets it; our end can be read with a deadline.
func outputPipe() (ours source, child *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	if raw, err := r.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) // refused past the user's limit: then it is 64 KiB
		})
	}
	return r, w, nil
}
