package agentserver

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// openTTY makes a pseudo-terminal that belongs to the agent. Both ends are opened by
// descriptor: no name below /dev/pts is looked up.
func openTTY(uid, gid int) (master, slave *os.File, err error) {
	err = proc.As(uid, gid, func() error { // the slave belongs to whoever opens the master
		master, slave, err = openPair()
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return master, slave, nil
}

func openPair() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx") // non-blocking: reads have deadlines
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		_ = master.Close()
		return nil, nil, err
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		_ = master.Close()
		return nil, nil, errno
	}
	return master, os.NewFile(peer, "tty"), nil
}

// setSize tells the terminal its size. 0 rows and columns is not known.
func setSize(master *os.File, rows, cols uint16) {
	raw, err := master.SyscallConn()
	if err != nil || rows == 0 || cols == 0 {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}
