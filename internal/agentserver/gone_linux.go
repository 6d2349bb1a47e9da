package agentserver

import (
	"net"

	"golang.org/x/sys/unix"
)

// hasGone reports whether the other side of a connection has closed it, without reading
// what it wrote before.
func hasGone(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	const ended = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR
	gone := false
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(look, 0)
		gone = err == nil && n > 0 && look[0].Revents&ended != 0
	})
	return gone || err != nil
}
