package owner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/errs"
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

// samePeer refuses a peer of another user.
func samePeer(conn net.Conn) error {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("control connection is a %T", conn)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Xucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return err
	}
	if int(cred.Uid) != os.Geteuid() {
		return errs.New("owner.Serve", errs.Auth, "", "user %d may not control the runs of user %d", cred.Uid, os.Geteuid())
	}
	return nil
}
