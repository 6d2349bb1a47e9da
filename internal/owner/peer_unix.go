//go:build linux || darwin

package owner

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/Insights/insightscli/internal/errs"
)

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
	var uid int
	var uidErr error
	err = raw.Control(func(fd uintptr) { uid, uidErr = peerUID(int(fd)) })
	if err := errors.Join(err, uidErr); err != nil {
		return err
	}
	return sameUser(uid)
}

func sameUser(uid int) error {
	if uid == os.Geteuid() {
		return nil
	}
	return errs.New("owner.Serve", errs.Auth, "", "user %d may not control the runs of user %d", uid, os.Geteuid())
}
