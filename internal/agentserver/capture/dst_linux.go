package capture

import (
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// soOriginalDst is SO_ORIGINAL_DST of <linux/netfilter_ipv4.h>.
const soOriginalDst = 80

// originalDestination asks the kernel which address was dialled before a rule changed it.
func originalDestination(conn *net.TCPConn) (netip.AddrPort, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var got *unix.IPv6Mreq
	var failed error
	err = raw.Control(func(fd uintptr) {
		// Any option of at least the size of a sockaddr_in will do.
		got, failed = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, soOriginalDst)
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	if failed != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockopt", failed)
	}
	return socketAddress(got.Multiaddr[:])
}

// descriptors is how many files this process may have open.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > maxConns*4 {
		return maxConns * 4
	}
	return int(limit.Cur)
}
