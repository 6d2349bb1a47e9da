package jail

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// loopback is the number of the interface lo in every network namespace.
const loopback = 1

// route is one route to add.
type route struct {
	to       netip.Prefix
	kind     byte // unix.RTN_*
	table    byte
	scope    byte
	oif      uint32     // 0: none
	source   netip.Addr // preferred; invalid: none
	priority uint32     // 0: none
}

// everywhere is where every address that an agent may dial lies, as far as IPv4 goes. For
// IPv6 there is no route at all: such a connection is refused at once.
func everywhere() netip.Prefix { return netip.PrefixFrom(netip.IPv4Unspecified(), 0) }

// throughLoopback gives every address a way, by which nothing leaves: lo drops what is not
// its own. The nat rules make it a listener's own before it gets there.
func throughLoopback() route {
	return route{
		to: everywhere(), kind: unix.RTN_UNICAST, table: unix.RT_TABLE_MAIN, scope: unix.RT_SCOPE_LINK,
		oif: loopback, source: netip.AddrFrom4([4]byte{127, 0, 0, 1}),
	}
}

// anyAddress makes every address one of this machine's own.
func anyAddress() route {
	return route{to: everywhere(), kind: unix.RTN_LOCAL, table: unix.RT_TABLE_LOCAL, scope: unix.RT_SCOPE_HOST, oif: loopback}
}

// unreachable refuses an address. Its priority beats the on-link route that the kernel
// makes for an interface.
func unreachable(p netip.Prefix) route {
	return route{to: p, kind: unix.RTN_UNREACHABLE, table: unix.RT_TABLE_MAIN, scope: unix.RT_SCOPE_UNIVERSE, priority: 1}
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
	for _, p := range refused() {
		err := addRoute(unreachable(p))
		if p.Addr().Is6() && (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT)) {
			continue // this kernel has no IPv6, so there is no way to it either
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return pathError("route", p.String(), err)
		}
	}
	return nil
}

// addRoute adds a route.
func addRoute(r route) error { return request(r.message()) }

// addOwnAddress gives lo an address beside 127.0.0.1. The C library takes a machine that has
// only that one for one without IPv4, and finds no name for programs that ask for what the
// machine can reach (AI_ADDRCONFIG: apt, wget, getent and many more). It is the one that
// /etc/hosts gives the sandbox's own name.
func addOwnAddress() error { return addAddress([4]byte{127, 0, 1, 1}, 8) }

// addAddress gives lo an address in a network of that many bits.
func addAddress(addr [4]byte, bits byte) error {
	header := []byte{unix.AF_INET, bits, 0, unix.RT_SCOPE_HOST}
	body := binary.NativeEndian.AppendUint32(header, loopback)
	body = appendAttr(body, unix.IFA_LOCAL, addr[:])
	body = appendAttr(body, unix.IFA_ADDRESS, addr[:])
	return request(appendMessage(nil, unix.RTM_NEWADDR, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL, body))
}

// request sends one request and reads the kernel's answer to it.
func request(message []byte) error {
	nl, err := openNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer nl.close()
	if err := nl.send(message); err != nil {
		return err
	}
	return nl.answer()
}

// message is the request that adds the route.
func (r route) message() []byte {
	e := binary.NativeEndian
	family := byte(unix.AF_INET)
	if r.to.Addr().Is6() {
		family = unix.AF_INET6
	}
	rt := make([]byte, unix.SizeofRtMsg)
	rt[0], rt[1] = family, byte(r.to.Bits())
	rt[4], rt[5], rt[6], rt[7] = r.table, unix.RTPROT_STATIC, r.scope, r.kind
	if r.to.Bits() > 0 {
		rt = appendAttr(rt, unix.RTA_DST, r.to.Masked().Addr().AsSlice())
	}
	if r.oif != 0 {
		rt = appendAttr(rt, unix.RTA_OIF, e.AppendUint32(nil, r.oif))
	}
	if r.source.IsValid() {
		rt = appendAttr(rt, unix.RTA_PREFSRC, r.source.AsSlice())
	}
	if r.priority != 0 {
		rt = appendAttr(rt, unix.RTA_PRIORITY, e.AppendUint32(nil, r.priority))
	}
	return appendMessage(nil, unix.RTM_NEWROUTE, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL, rt)
}
