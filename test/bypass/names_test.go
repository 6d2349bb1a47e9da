//go:build linux

package bypass

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names is the name server of the world. Every name has an address:
//
//	evilN.test, and all below it        that of the N-th attempt
//	addr-XXXX.bad.example               the one that XXXX is, in hexadecimal
//	N.rebind.example                    a public one, and a private one when asked again
//	N.mixed.example                     both at once
//	N.chain.example                     a name that leads to a private one
//	all others                          93.182.0.1, and those that are allowed 93.183.0.x
type names struct {
	w     *world
	mu    sync.Mutex // guards asked
	asked map[string]int
}

func newNames(w *world) *names { return &names{w: w, asked: map[string]int{}} }

// private is where names lead that should not be followed.
const private = "10.66.0.1"

// evilAddr and evilAddr6 are the addresses of the N-th attempt, which nothing else has.
func evilAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{93, 184, byte(n / 250), byte(n%250 + 1)})
}

func evilAddr6(n int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("2606:2800:220::%x", n+1))
}

// evilAddrs are all the addresses that only the N-th attempt knows.
func evilAddrs(n int) []netip.Addr {
	ip := evilAddr(n).As4()
	mapped := [16]byte{0, 0x64, 0xff, 0x9b}
	copy(mapped[12:], ip[:])
	six := [16]byte{0x20, 2, ip[0], ip[1], ip[2], ip[3], 15: 1}
	return []netip.Addr{evilAddr(n), evilAddr6(n), netip.AddrFrom16(mapped), netip.AddrFrom16(six)}
}

// allowedAddrs are the addresses at which something may arrive from a restricted sandbox.
func allowedAddrs() map[string]netip.Addr {
	return map[string]netip.Addr{
		"good.example": netip.MustParseAddr("93.183.0.1"), "wild.example": netip.MustParseAddr("93.183.0.2"),
		"port.example": netip.MustParseAddr("93.183.0.3"), "api.example": netip.MustParseAddr("93.183.0.4"),
		"own.example": netip.MustParseAddr("93.183.0.5"), "rebind.example": netip.MustParseAddr("93.183.0.6"),
	}
}

// find returns the addresses of a name, and the name that it is another one for.
func (n *names) find(name string) (addrs []netip.Addr, alias string) {
	public := allowedAddrs()["rebind.example"]
	labels := strings.Split(name, ".")
	top := strings.Join(labels[max(0, len(labels)-2):], ".")
	switch {
	case top == "bad.example" && strings.HasPrefix(labels[0], "addr-"):
		b, _ := hex.DecodeString(labels[0][len("addr-"):])
		if addr, ok := netip.AddrFromSlice(b); ok {
			return []netip.Addr{addr}, ""
		}
	case top == "rebind.example":
		if n.again(name) {
			public = netip.MustParseAddr(private)
		}
		return []netip.Addr{public}, ""
	case top == "mixed.example":
		return []netip.Addr{netip.MustParseAddr(private), public}, ""
	case top == "chain.example":
		return []netip.Addr{netip.MustParseAddr(private)}, "inner." + name[:len(name)-len("chain.example")] + "test"
	case len(labels) >= 2 && strings.HasPrefix(labels[len(labels)-2], "evil"):
		if i, err := strconv.Atoi(labels[len(labels)-2][4:]); err == nil {
			return []netip.Addr{evilAddr(i)}, ""
		}
	case top == "wild.example" || len(labels) == 2 && allowedAddrs()[top].IsValid():
		return []netip.Addr{allowedAddrs()[top]}, ""
	}
	return []netip.Addr{netip.MustParseAddr("93.182.0.1")}, ""
}

func (n *names) again(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[name]++
	return n.asked[name] > 1
}

// answer answers one message.
func (n *names) answer(message []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: header.ID, Response: true, RecursionAvailable: true})
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
	if q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA && strings.Contains(q.Name.String(), ".bad.") {
		addrs, alias := n.find(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")))
		if to, err := dnsmessage.NewName(alias + "."); err == nil && alias != "" {
			_ = b.CNAMEResource(head, dnsmessage.CNAMEResource{CNAME: to})
			head.Name = to
		}
		for _, a := range addrs {
			if a.Is4() && q.Type == dnsmessage.TypeA {
				_ = b.AResource(head, dnsmessage.AResource{A: a.As4()})
			} else if a.Is6() && q.Type == dnsmessage.TypeAAAA {
				_ = b.AAAAResource(head, dnsmessage.AAAAResource{AAAA: a.As16()})
			}
		}
	}
	out, _ := b.Finish()
	return out
}

func (n *names) serveTCP(c net.Conn) {
	for {
		size := make([]byte, 2)
		if _, err := io.ReadFull(c, size); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(c, message); err != nil {
			return
		}
		answer := n.answer(message)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// resolver asks this server, as the host's would ask that of its network.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	var d net.Dialer
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, "127.0.0.1:53")
	}}
	return r.LookupNetIP(ctx, "ip", name+".")
}

// loosely finds an address as careless programs do.
func (n *names) loosely(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	if i, err := strconv.ParseUint(host, 0, 32); err == nil {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(i)))).String()
	}
	addrs, _ := n.find(strings.ToLower(strings.TrimSuffix(host, ".")))
	return addrs[0].String()
}
