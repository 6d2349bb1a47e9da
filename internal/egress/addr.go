package egress

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// reserved returns the blocks of addresses that are not of the public internet, beside those
// that netip knows.
func reserved() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", // 169.254/16, 10/8 and the like: netip
		"2001::/23", "2001:db8::/32", "3fff::/20", // Teredo and protocol assignments; documentation
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// addresses knows which addresses may be dialled.
type addresses struct {
	permit   func(netip.Addr) bool // asked first, for tests
	reserved []netip.Prefix
	own      ownAddresses
}

func newAddresses(permit func(netip.Addr) bool) *addresses {
	return &addresses{permit: permit, reserved: reserved()}
}

// ok reports whether an address is public and not one of this machine.
func (a *addresses) ok(addr netip.Addr) bool {
	if a.permit != nil && a.permit(addr) {
		return true
	}
	if addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if inner, carries := embedded(addr); carries {
		addr = inner
	}
	return a.public(addr) && !a.own.has(addr)
}

func (a *addresses) public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is6() && !global6().Contains(addr) {
		return false
	}
	return !slices.ContainsFunc(a.reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// global6 is all of IPv6 that is handed out so far.
func global6() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3) }

// embedded returns the IPv4 address that an address of NAT64 or 6to4 stands for. Those are
// judged by it: on a network without IPv4 every name resolves to the former.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return addr, false
	}
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return addr, false
}

// ownTime is how long the addresses of this machine are taken to be the same.
const ownTime = 5 * time.Second

// ownAddresses are those of this machine's interfaces: a server that listens on all of them
// is not for sandboxes.
type ownAddresses struct {
	mu   sync.Mutex // guards what follows
	read time.Time
	all  map[netip.Addr]bool
}

func (o *ownAddresses) has(addr netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); o.all == nil || now.Sub(o.read) > ownTime {
		list, err := net.InterfaceAddrs()
		if err != nil {
			return true // not known is not allowed
		}
		o.all, o.read = map[netip.Addr]bool{}, now
		for _, a := range list {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				o.all[p.Addr().Unmap()] = true
			}
		}
	}
	return o.all[addr]
}
