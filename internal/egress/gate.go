package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// DefaultConns is how many connections a run may have at once.
const DefaultConns = 1024

// Config is what a gate works with. Only Set has no default that works.
type Config struct {
	// Set is the policy. It stays what it is for as long as the gate lives.
	Set rule.Set
	Run task.ID // for the record

	// Resolve returns the addresses of a name; nil asks the resolver of this machine.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that was checked, or to the proxy; nil is a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Permit lets addresses through that are not public. It is for tests, whose internet is
	// a block of addresses of this machine; nil permits none.
	Permit func(netip.Addr) bool

	// Proxy names the proxy that a URL is reached through, nil for none; see [ProxyFunc].
	Proxy func(*url.URL) (*url.URL, error)
	// RootCAs are the authorities that a proxy at an https URL is checked by; nil are those
	// of the system.
	RootCAs *x509.CertPool

	OnDenied func(task.Denied) // called by one goroutine at a time; nil drops them
	Audit    func(Record)      // called by several; nil drops them

	MaxConns int // 0 is DefaultConns
}

// Gate lets the connections of one run through, or does not. Its methods may be called at
// the same time.
type Gate struct {
	cfg     Config
	addrs   *addresses
	buffers *buffers
	denials *denials
	slots   chan struct{}
	dialing chan struct{} // a slot for each name that is looked up and dialled
	plain   *plainProxy
}

// maxDialing is how many connections are being made at once. The others wait.
const maxDialing = 256

// New makes a gate.
func New(cfg Config) *Gate {
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = DefaultConns
	}
	if cfg.Resolve == nil {
		cfg.Resolve = resolveHere
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	g := &Gate{
		cfg: cfg, addrs: newAddresses(cfg.Permit), buffers: newBuffers(), denials: newDenials(cfg.OnDenied),
		slots: make(chan struct{}, cfg.MaxConns), dialing: make(chan struct{}, maxDialing),
	}
	g.plain = newPlainProxy(g)
	return g
}

// Close tells the denials that have not been told yet, and ends what is kept open to
// proxies. It is called once, after the last ServeConn has returned.
func (g *Gate) Close() {
	g.plain.close()
	g.denials.close()
}

// place is where a connection goes: a name or, if that is empty, an address.
type place struct {
	name string
	addr netip.Addr
	port uint16
}

// host is the place in words, without its port.
func (p place) host() string {
	if p.name == "" && p.addr.IsValid() {
		return p.addr.Unmap().String()
	}
	return p.name
}

// String implements fmt.Stringer: host:port.
func (p place) String() string { return net.JoinHostPort(p.host(), strconv.Itoa(int(p.port))) }

// denial is why a connection is refused by the policy. Another error is one of the network.
type denial struct {
	reason string
	rule   string // that would allow it; empty: none could
}

// Error implements error.
func (d *denial) Error() string { return d.reason }

func deny(rule, format string, args ...any) error {
	return &denial{reason: fmt.Sprintf(format, args...), rule: rule}
}

// ServeConn serves one stream of wire.ServiceEgress: a link.Handler. It returns when the
// connection is over.
func (g *Gate) ServeConn(ctx context.Context, conn net.Conn) error {
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	default:
		err := deny("", "more than %d connections at once", cap(g.slots))
		g.refused(place{}, err, nil)
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	asked, err := readEgress(conn)
	if err != nil {
		return err
	}
	switch {
	case asked.Proxy:
		if err := answer(conn, nil); err != nil {
			return err
		}
		return g.serveProxy(ctx, conn)
	case asked.Lookup:
		err := g.lookup(asked.Name)
		return answer(conn, err)
	}
	return g.serveDirect(ctx, conn, asked)
}

// lookup records that a name was asked for that is not allowed. A name that is allowed is
// not an answer that the sandbox would ask for.
func (g *Gate) lookup(name string) error {
	if _, ok := g.cfg.Set.Name(name); ok {
		return nil
	}
	p := place{name: short(name)}
	err := deny(rule.Suggest(name, 443), "the network policy does not allow %s", p.name)
	g.refused(p, err, nil)
	return err
}

// serveDirect serves a connection that was captured.
func (g *Gate) serveDirect(ctx context.Context, conn net.Conn, asked wire.Egress) error {
	addr, err := netip.ParseAddrPort(asked.Addr)
	if err != nil || addr.Port() == 0 {
		return answer(conn, errors.New("malformed address"))
	}
	p := place{name: asked.Name, addr: addr.Addr(), port: addr.Port()}
	allowed, err := g.judge(p)
	if err != nil {
		g.refused(p, err, nil)
		return answer(conn, err)
	}
	target, err := g.open(ctx, p)
	if err != nil {
		g.refused(p, err, nil)
		return answer(conn, err)
	}
	if err := answer(conn, nil); err != nil {
		_ = target.Close()
		return err
	}
	g.carry(ctx, newPassage(p, allowed, newInlet(conn), target))
	return nil
}

// judge says which rule allows connections to a place. Nothing is resolved before that.
func (g *Gate) judge(p place) (allowed string, err error) {
	set := g.cfg.Set
	switch {
	case p.name == "" && !set.Public():
		return "", deny("", "the network policy allows names only, and %s was dialled", p)
	case p.name == "" && !g.addrs.ok(p.addr):
		return "", deny("", "%s is not a public address", p.addr)
	case p.name == "":
		return rule.All, nil
	}
	allowed, ok := set.Match(p.name, p.port)
	if !ok {
		p.name = short(p.name)
		return "", deny(rule.Suggest(p.name, p.port), "the network policy does not allow %s", p)
	}
	return allowed, nil
}

// refused tells and records a refusal, of the policy or of the network. p may hold what a
// client made up.
func (g *Gate) refused(p place, err error, part *passage) {
	r := Record{Name: short(p.name), Port: p.port, Verdict: "error", Reason: err.Error()}
	if p.addr.IsValid() {
		r.Addr = p.addr.String()
	}
	if part != nil {
		r.Sent, r.Received = part.up.Load(), part.down.Load()
	}
	var d *denial
	if errors.As(err, &d) {
		r.Verdict, r.Rule = "deny", d.rule
		g.denials.add(task.Denied{Host: short(p.host()), Port: int(p.port), Reason: d.reason, Rule: d.rule})
	}
	g.record(r)
}

func (g *Gate) record(r Record) {
	if g.cfg.Audit != nil {
		r.Time, r.Run = time.Now(), g.cfg.Run
		g.cfg.Audit(r)
	}
}

// short bounds what a client made up, and makes it safe to print.
func short(name string) string {
	out := []byte(name[:min(len(name), 253)])
	for i, c := range out {
		if c <= ' ' || c >= 0x7f {
			out[i] = '?'
		}
	}
	return string(out)
}
