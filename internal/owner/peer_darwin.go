package owner

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// shortRoot is where sockets lie whose own directory has too long a name.
const shortRoot = "/tmp"

// private refuses a directory that another user made first.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a closed directory of this user", dir)
	}
	return nil
}

// peerUID asks a socket who is on its other side.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
