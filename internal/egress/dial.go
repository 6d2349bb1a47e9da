package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Times of a connection that is being made.
const (
	openTime    = 30 * time.Second       // for all of it
	resolveTime = 10 * time.Second       // for its name
	addressTime = 10 * time.Second       // for one address
	headStart   = 250 * time.Millisecond // of one address before the next is tried beside it
	maxAddrs    = 16                     // of a name that are tried
)

// resolveHere asks the resolver of this machine, for this very name: the search list of
// resolv.conf is for people.
func resolveHere(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// open makes the connection to a place that was judged. Its error is a [denial] where the
// address is one that must not be dialled.
func (g *Gate) open(ctx context.Context, p place) (net.Conn, error) {
	select {
	case g.dialing <- struct{}{}:
		defer func() { <-g.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	via, err := g.proxyFor(p)
	if err != nil {
		return nil, err
	}
	if via != nil {
		return g.openVia(ctx, via, p)
	}
	addrs, err := g.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	return g.race(ctx, addrs, p.port)
}

// resolve returns the addresses of a place that may be dialled; they are dialled as they
// are, so that a second answer of a name server cannot change what was checked.
func (g *Gate) resolve(ctx context.Context, p place) ([]netip.Addr, error) {
	if p.name == "" {
		return []netip.Addr{p.addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	all, err := g.cfg.Resolve(ctx, p.name)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %s", p.name, lookupReason(err))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("resolve %s: no address", p.name)
	}
	var ok []netip.Addr
	for _, a := range all {
		if g.addrs.ok(a) && len(ok) < maxAddrs {
			ok = append(ok, a.Unmap())
		}
	}
	if len(ok) == 0 {
		return nil, deny("", "%s is at %s, which is not a public address", p.name, all[0])
	}
	return interleave(ok), nil
}

// lookupReason leaves out what a resolver's error repeats.
func lookupReason(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return strings.ToLower(dns.Err)
	}
	return err.Error()
}

// interleave puts addresses of the two families in turn, in the order in which they came.
func interleave(addrs []netip.Addr) []netip.Addr {
	var a, b []netip.Addr
	for _, x := range addrs {
		if x.Is4() == addrs[0].Is4() {
			a = append(a, x)
		} else {
			b = append(b, x)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			out = append(out, a[i])
		}
		if i < len(b) {
			out = append(out, b[i])
		}
	}
	return out
}

// dialled is what came of one address.
type dialled struct {
	conn net.Conn
	err  error
}

// race dials addresses, each a little after the one before or when that has failed, and
// returns the first connection. The others are ended before it returns.
func (g *Gate) race(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialled)
	next, waiting := 0, 0
	start := func() {
		if next == len(addrs) {
			return
		}
		address := netip.AddrPortFrom(addrs[next], port).String()
		next, waiting = next+1, waiting+1
		go func() { results <- g.dialOne(ctx, address) }() // waited for: one result each
	}
	start()
	var won net.Conn
	var first error
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	for waiting > 0 {
		select {
		case r := <-results:
			waiting--
			switch {
			case r.err == nil && won == nil:
				won = r.conn
				cancel()
			case r.err == nil:
				_ = r.conn.Close()
			case won == nil:
				first = cmpErr(first, r.err)
				start()
				timer.Reset(headStart)
			}
		case <-timer.C:
			if won == nil {
				start()
				timer.Reset(headStart)
			}
		}
	}
	if won == nil {
		return nil, first
	}
	return won, nil
}

func cmpErr(first, next error) error {
	if first != nil {
		return first
	}
	return next
}

func (g *Gate) dialOne(ctx context.Context, address string) dialled {
	ctx, cancel := context.WithTimeout(ctx, addressTime)
	defer cancel()
	conn, err := g.cfg.Dial(ctx, "tcp", address)
	return dialled{conn: conn, err: err}
}
