package agentserver

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user at the other end of a unix socket.
func peerUID(conn net.Conn) (uid int, ok bool) {
	u, isUnix := conn.(*net.UnixConn)
	if !isUnix {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = raw.Control(func(fd uintptr) { // ok stays false
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid, ok = int(cred.Uid), true
		}
	})
	return uid, ok
}
