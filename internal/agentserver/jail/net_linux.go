package jail

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

// network brings up loopback, the only interface that a sandbox of `local` has, at
// every network level. sys is the host's /proc/sys, where the sysctls of the new
// network namespace are reached: it must run before the old root goes.
//
// A listener that captures connections (routes, nat rules, sockets) belongs here
// too: this is the last place that has CAP_NET_ADMIN.
func network(sys string) error {
	if err := loopbackUp(); err != nil {
		return step(plan.StepNetwork, err)
	}
	// Without the first one the agent, which has no capability, cannot serve 80.
	sysctls := [][2]string{
		{"/net/ipv4/ip_unprivileged_port_start", "0"},
		{"/net/ipv6/conf/all/disable_ipv6", "0"},
		{"/net/ipv6/conf/default/disable_ipv6", "0"},
		{"/net/ipv6/conf/lo/disable_ipv6", "0"},
	}
	for _, s := range sysctls {
		if err := setSysctl(sys+s[0], s[1]); err != nil {
			return step(plan.StepSysctl, err)
		}
	}
	return nil
}

// setSysctl writes a value. A kernel without the setting (no IPv6) is fine.
func setSysctl(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		_, err = unix.Write(fd, []byte(value))
		err = errors.Join(err, unix.Close(fd))
	}
	if err != nil {
		if old, readErr := os.ReadFile(path); readErr == nil && string(old) == value+"\n" {
			return nil // read-only, as in a container, and as it must be
		}
	}
	return pathError("write", path, err)
}

// shareInotify leaves the half of the user's inotify instances and watches to the host:
// the kernel counts those of the sandbox as the user's, and an agent that took all
// would stop the editors and file managers outside. The setting is that of this user
// namespace, in which all of the agent's lie. Where it cannot be written the agent
// goes without a bound of its own.
func shareInotify(sys string) error {
	for _, name := range []string{"instances", "watches"} {
		data, err := os.ReadFile(sys + "/fs/inotify/max_user_" + name)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && n > 1 {
			_ = setSysctl(sys+"/user/max_inotify_"+name, strconv.Itoa(n/2))
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr))
}

// refused are the addresses that no sandbox may reach at any network level: cloud
// metadata services and link-local neighbours.
func refused() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("fd00:ec2::254/128"),
	}
}

// refuseMetadata makes the refused addresses unreachable by routes.
func refuseMetadata() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	for i, p := range refused() {
		err := addRoute(fd, unreachable(p, uint32(i+1)))
		if p.Addr().Is6() && (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT)) {
			continue // this kernel has no IPv6, so there is no way to it either
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return pathError("route", p.String(), err)
		}
	}
	return nil
}

// unreachable is the netlink message that adds an unreachable route. Its priority
// beats the on-link route that the kernel makes for an interface.
func unreachable(p netip.Prefix, seq uint32) []byte {
	const headers = unix.NLMSG_HDRLEN + unix.SizeofRtMsg
	addr := p.Masked().Addr().AsSlice()
	family := byte(unix.AF_INET)
	if p.Addr().Is6() {
		family = unix.AF_INET6
	}
	msg := make([]byte, headers, headers+64)
	e := binary.NativeEndian
	e.PutUint16(msg[4:], unix.RTM_NEWROUTE)
	e.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	e.PutUint32(msg[8:], seq)
	rt := msg[unix.NLMSG_HDRLEN:]
	rt[0], rt[1] = family, byte(p.Bits())
	rt[4], rt[5] = unix.RT_TABLE_MAIN, unix.RTPROT_STATIC
	rt[6], rt[7] = unix.RT_SCOPE_UNIVERSE, unix.RTN_UNREACHABLE
	msg = appendAttr(msg, unix.RTA_DST, addr)
	msg = appendAttr(msg, unix.RTA_PRIORITY, e.AppendUint32(nil, 1))
	e.PutUint32(msg[0:], uint32(len(msg)))
	return msg
}

func appendAttr(msg []byte, kind uint16, value []byte) []byte {
	msg = binary.NativeEndian.AppendUint16(msg, uint16(unix.SizeofRtAttr+len(value)))
	msg = binary.NativeEndian.AppendUint16(msg, kind)
	msg = append(msg, value...)
	for len(msg)%unix.NLMSG_ALIGNTO != 0 {
		msg = append(msg, 0)
	}
	return msg
}

// addRoute sends one request and reads the kernel's answer to it.
func addRoute(fd int, msg []byte) error {
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return os.NewSyscallError("recvfrom", err)
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return os.NewSyscallError("netlink", unix.EPROTO)
	}
	if errno := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}
