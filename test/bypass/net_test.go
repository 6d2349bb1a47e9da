//go:build linux

package bypass

import (
	"context"
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func background() context.Context { return context.Background() }

// ownAddr is the one address that an interface of the stand-in internet has beside
// loopback's: to the gate it is the machine's own, although a public one.
const ownAddr = "93.180.0.9"

// makeWorld makes this process's network namespace one in which every address is its own.
func makeWorld() error {
	for path, value := range map[string]string{
		"/proc/sys/net/ipv4/ip_unprivileged_port_start": "0",
		"/proc/sys/net/ipv4/ping_group_range":           "0 2147483647",
	} {
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return err
		}
	}
	up := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(up[4:], 1)
	binary.NativeEndian.PutUint32(up[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(up[12:], unix.IFF_UP)
	if err := netlink(unix.RTM_NEWLINK, 0, up); err != nil {
		return err
	}
	own := append([]byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0}, attr(unix.IFA_LOCAL, []byte{93, 180, 0, 9})...)
	if err := netlink(unix.RTM_NEWADDR, unix.NLM_F_CREATE, own); err != nil {
		return err
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		route := []byte{family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
		route = append(route, attr(unix.RTA_OIF, []byte{1, 0, 0, 0})...)
		if err := netlink(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, route); err != nil {
			return err
		}
	}
	return nil
}

func netlink(kind, flags uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	e := binary.NativeEndian
	m := e.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	m = e.AppendUint16(e.AppendUint16(m, kind), unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	m = append(append(m, make([]byte, 8)...), body...)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 {
		return errors.New("a short answer")
	}
	if errno := int32(e.Uint32(b[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
