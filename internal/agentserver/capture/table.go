package capture

import (
	"container/list"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"github.com/Insights/insightscli/internal/link/wire"
)

// maxNames bounds the names that have an address. It is well below the size of the block:
// an address comes to another name only after a hundred thousand others have been given.
const maxNames = 16 << 10

// table gives names their addresses.
type table struct {
	block netip.Prefix
	size  uint32

	mu     sync.Mutex // guards what follows
	next   uint32     // the address that is tried next, counted from the beginning of the block
	byName map[string]*entry
	byAddr map[netip.Addr]*entry
	recent *list.List // of *entry, the one that was asked for last in front
}

type entry struct {
	name string
	addr netip.Addr
	live int // connections
	at   *list.Element
}

func newTable() *table {
	block := netip.MustParsePrefix(wire.EgressAddresses)
	return &table{
		block: block, size: 1 << (32 - block.Bits()),
		byName: map[string]*entry{}, byAddr: map[netip.Addr]*entry{}, recent: list.New(),
	}
}

// address returns the address of a name, which stays the same for as long as the name is
// remembered. Without room the name that was not asked for the longest is forgotten, unless
// there are connections to it. ok is false when there are to all.
func (t *table) address(name string) (addr netip.Addr, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byName[name]; e != nil {
		t.recent.MoveToFront(e.at)
		return e.addr, true
	}
	if len(t.byName) >= maxNames && !t.forget() {
		return netip.Addr{}, false
	}
	e := &entry{name: name, addr: t.free()}
	e.at = t.recent.PushFront(e)
	t.byName[name], t.byAddr[e.addr] = e, e
	return e.addr, true
}

// forget makes room. There are fewer connections than names, so that it looks at few.
func (t *table) forget() bool {
	for at := t.recent.Back(); at != nil; at = at.Prev() {
		e := at.Value.(*entry)
		if e.live > 0 {
			continue
		}
		t.recent.Remove(at)
		delete(t.byName, e.name)
		delete(t.byAddr, e.addr)
		return true
	}
	return false
}

// free returns an address that nobody has. The first and the last of the block, which look
// like those of a network and of a broadcast, are never given.
func (t *table) free() netip.Addr {
	for {
		t.next = t.next%(t.size-2) + 1
		addr := t.nth(t.next)
		if t.byAddr[addr] == nil {
			return addr
		}
	}
}

func (t *table) nth(n uint32) netip.Addr {
	base := t.block.Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+n)
	return netip.AddrFrom4(b)
}

// use returns the name that has an address, "" if none has, and keeps it until release.
func (t *table) use(addr netip.Addr) (name string, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byAddr[addr]
	if e == nil {
		return "", func() {}
	}
	e.live++
	t.recent.MoveToFront(e.at)
	return e.name, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		e.live--
	}
}

// name returns the name that has an address, "" if none has.
func (t *table) name(addr netip.Addr) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byAddr[addr]; e != nil {
		return e.name
	}
	return ""
}

// socketAddress reads a struct sockaddr_in.
func socketAddress(b []byte) (netip.AddrPort, error) {
	const family = 2 // AF_INET
	if len(b) < 8 || binary.NativeEndian.Uint16(b) != family {
		return netip.AddrPort{}, errors.New("not an address of IPv4")
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), nil
}
