package egress_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
)

// certificate is self-signed.
func certificate(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// What no rule allows is refused before anything is resolved or dialled, and the rule that
// would allow it is a rule.
func TestRefusedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		what wire.Egress
		rule string
	}{
		"another name":        {wire.Egress{Name: "evil.test", Addr: "198.18.0.1:443"}, "evil.test"},
		"another port":        {wire.Egress{Name: "good.test", Addr: "198.18.0.1:8443"}, "good.test:8443"},
		"another ssh port":    {wire.Egress{Name: "good.test", Addr: "198.18.0.1:2222"}, "good.test:2222"},
		"below the name":      {wire.Egress{Name: "a.good.test", Addr: "198.18.0.1:443"}, "a.good.test"},
		"a suffix":            {wire.Egress{Name: "xgood.test", Addr: "198.18.0.1:443"}, "xgood.test"},
		"a name behind":       {wire.Egress{Name: "good.test.evil.test", Addr: "198.18.0.1:443"}, "good.test.evil.test"},
		"beside a wildcard":   {wire.Egress{Name: "xwild.test", Addr: "198.18.0.1:443"}, "xwild.test"},
		"a dot at its end":    {wire.Egress{Name: "good.test.", Addr: "198.18.0.1:443"}, ""},
		"a zero":              {wire.Egress{Name: "good.test\x00.evil.test", Addr: "198.18.0.1:443"}, ""},
		"not a name":          {wire.Egress{Name: "<<" + strings.Repeat("<", 140), Addr: "198.18.0.1:443"}, ""},
		"an address":          {wire.Egress{Addr: "93.184.216.1:443"}, ""},
		"an address as name":  {wire.Egress{Name: "93.184.216.1", Addr: "198.18.0.1:443"}, ""},
		"decimal":             {wire.Egress{Name: "1572395009", Addr: "198.18.0.1:443"}, ""},
		"hexadecimal":         {wire.Egress{Name: "0x5db8d801", Addr: "198.18.0.1:443"}, ""},
		"octal":               {wire.Egress{Name: "0135.0270.0330.01", Addr: "198.18.0.1:443"}, ""},
		"in version 6":        {wire.Egress{Addr: "[2606:2800::1]:443"}, ""},
		"mapped":              {wire.Egress{Addr: "[::ffff:93.184.216.1]:443"}, ""},
		"metadata":            {wire.Egress{Addr: "169.254.169.254:80"}, ""},
		"the machine":         {wire.Egress{Name: "localhost", Addr: "198.18.0.1:80"}, ""},
		"the host":            {wire.Egress{Name: "host.docker.internal", Addr: "198.18.0.1:8888"}, ""},
		"a lookup":            {wire.Egress{Name: "secret.evil.test", Lookup: true}, "secret.evil.test"},
		"an unassigned block": {wire.Egress{Addr: "198.18.7.7:443"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, []string{"good.test", "*.wild.test"})
			w.name("good.test", "93.184.216.1")
			s := w.serve(t, "93.184.216.1:443", nil)
			conn, v := w.offer(t, c.what)
			if v.OK || v.Reason == "" || strings.ContainsAny(v.Reason, "\n\x00") {
				t.Fatalf("%+v", v)
			}
			say(t, conn, "anything")
			if got := w.ended(t, s); got != "" || len(w.asked)+len(w.dialled) != 0 {
				t.Errorf("%q arrived, %q were resolved, %q dialled", got, w.asked, w.dialled)
			}
			denied, records := w.told()
			if len(denied) != 1 || denied[0].Count != 1 || denied[0].Rule != c.rule || len(records) != 1 || records[0].Verdict != "deny" {
				t.Errorf("told %+v, recorded %+v", denied, records)
			}
			if c.rule == "" {
				return
			}
			if r, err := rule.Parse(c.rule); err != nil || r.String() != c.rule {
				t.Errorf("the rule %q: %v", c.rule, err)
			}
		})
	}
}

func TestMalformedOffers(t *testing.T) {
	w := newWorld(t, []string{rule.All})
	for _, addr := range []string{"", "x", "93.184.216.1", "93.184.216.1:0", "good.test:443", ":443", "1.2.3.4:99999"} {
		if _, v := w.offer(t, wire.Egress{Name: "good.test", Addr: addr}); v.OK {
			t.Errorf("%q is taken", addr)
		}
	}
	for _, line := range []string{"\n", "{\n", "[]\n", strings.Repeat("x", 2000)} {
		ours, theirs := tcpPair(t)
		served := make(chan error, 1)
		go func() { served <- w.gate.ServeConn(t.Context(), theirs); theirs.Close() }()
		answer := say(t, ours, line)
		if err := <-served; err == nil || answer != "" {
			t.Errorf("%q: %v, answered %q", line[:1], err, answer)
		}
	}
	if len(w.dialled) != 0 {
		t.Errorf("dialled: %q", w.dialled)
	}
}

// Every kind of address that is not of the public internet is refused, and one that is, is
// dialled: by a name that is allowed, and where every public address is.
func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	public := []string{"93.184.216.1", "1.1.1.1", "2606:2800::1", "::ffff:93.184.216.1", "64:ff9b::5db8:d801", "2002:5db8:d801::1", "198.20.0.1", "100.128.0.1", "172.32.0.1"}
	private := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9", "169.254.169.254", "169.254.0.1",
		"172.16.0.1", "172.17.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.7.7", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254",
		"ff02::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::1",
		"2001::1", "2001:db8::1", "3fff::1", "100::1", "4000::1",
	}
	for _, list := range []struct {
		addrs []string
		ok    bool
	}{{public, true}, {private, false}} {
		for _, a := range list.addrs {
			addr := netip.MustParseAddr(a)
			w := newWorld(t, []string{"good.test"})
			w.name("good.test", a)
			_, v := w.named(t, "good.test", 443)
			if tried := len(w.dialled) > 0; v.OK || tried != list.ok {
				t.Errorf("a name at %s: dialled %q", a, w.dialled)
			}
			w = newWorld(t, []string{rule.All})
			w.offer(t, wire.Egress{Addr: netip.AddrPortFrom(addr, 443).String()})
			if tried := len(w.dialled) > 0; tried != list.ok {
				t.Errorf("%s: dialled %q", a, w.dialled)
			}
		}
	}
}

// The addresses of this machine are not public, whatever they are.
func TestOwnAddressesAreRefused(t *testing.T) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		addr, err := netip.ParsePrefix(a.String())
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, []string{rule.All})
		if w.offer(t, wire.Egress{Addr: netip.AddrPortFrom(addr.Addr(), 8888).String()}); len(w.dialled) != 0 {
			t.Errorf("%s was dialled", addr)
		}
	}
}

// A name server that answers otherwise the second time gains nothing: what was checked is
// what is dialled, and names are asked for once.
func TestRebinding(t *testing.T) {
	w := newWorld(t, []string{"good.test"}, func(c *egress.Config) {
		n := 0
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			if n++; n > 1 {
				return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("93.184.216.1")}, nil
		}
	})
	s := w.serve(t, "93.184.216.1:22", nil)
	conn, v := w.named(t, "good.test", 22)
	if !v.OK {
		t.Fatal(v.Reason)
	}
	say(t, conn, "SSH-2.0-x\r\n")
	if got := w.ended(t, s); got == "" || len(w.dialled) != 1 {
		t.Errorf("%q arrived; dialled %q", got, w.dialled)
	}
	if _, v := w.named(t, "good.test", 22); v.OK || len(w.dialled) != 1 {
		t.Errorf("%+v; dialled %q", v, w.dialled)
	}
}

// One address that is silent does not keep a name from being reached.
func TestNextAddressIsTriedBesideASilentOne(t *testing.T) {
	var w *world
	var left sync.WaitGroup
	w = newWorld(t, []string{"good.test"}, func(c *egress.Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "93.184.216.2:") {
				left.Add(1)
				defer left.Done()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, address)
		}
	})
	w.name("good.test", "93.184.216.2", "93.184.216.3", "93.184.216.1")
	w.serve(t, "93.184.216.1:22", nil)
	if _, v := w.named(t, "good.test", 22); !v.OK {
		t.Fatal(v.Reason)
	}
	left.Wait()
}

// What is allowed and not to be had is no denial.
func TestFaultsOfTheNetworkAreNoDenials(t *testing.T) {
	w := newWorld(t, []string{"good.test", "none.test"})
	w.name("good.test", "93.184.216.1")
	for name, want := range map[string]string{"good.test": "connection refused", "none.test": "resolve none.test: no such host"} {
		if _, v := w.named(t, name, 443); v.OK || v.Reason != want {
			t.Errorf("%s: %+v", name, v)
		}
	}
	denied, records := w.told()
	if len(denied) != 0 || len(records) != 2 || records[0].Verdict != "error" {
		t.Errorf("told %+v, recorded %+v", denied, records)
	}
}

// Where every public address is allowed nothing is asked of what is said.
func TestPublicCarriesAnything(t *testing.T) {
	for _, what := range []wire.Egress{
		{Name: "good.test", Addr: "198.18.0.1:443"}, {Addr: "93.184.216.1:443"},
	} {
		w := newWorld(t, []string{rule.All})
		w.name("good.test", "93.184.216.1")
		s := w.serve(t, "93.184.216.1:443", nil)
		conn, v := w.offer(t, what)
		if !v.OK {
			t.Fatal(v.Reason)
		}
		say(t, conn, "GET / HTTP/1.1\r\nHost: any.test\r\n\r\n")
		if got := w.ended(t, s); !strings.Contains(got, "any.test") {
			t.Errorf("%q arrived", got)
		}
	}
}

// Either side may end its direction and go on with the other.
func TestHalfClose(t *testing.T) {
	w := newWorld(t, []string{"good.test"})
	w.name("good.test", "93.184.216.1", "93.184.216.2")
	w.serve(t, "93.184.216.1:22", func(r io.Reader, conn *net.TCPConn) {
		all, _ := io.ReadAll(r)
		_, _ = fmt.Fprintf(conn, "%d bytes", len(all))
	})
	conn, _ := w.named(t, "good.test", 22)
	if answer := say(t, conn, "hello"); answer != "5 bytes" {
		t.Errorf("the client ends first: %q", answer)
	}
	ended := make(chan string, 1)
	w.serve(t, "93.184.216.1:22", func(r io.Reader, conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "bye")
		_ = conn.CloseWrite()
		all, _ := io.ReadAll(r)
		ended <- string(all)
	})
	conn, _ = w.named(t, "good.test", 22)
	if all, err := io.ReadAll(conn); string(all) != "bye" || err != nil {
		t.Fatalf("%q, %v", all, err)
	}
	_, _ = io.WriteString(conn, "still here")
	_ = conn.CloseWrite()
	if got := <-ended; got != "still here" {
		t.Errorf("the server ends first: %q", got)
	}
}

// A connection that one side has reset is not taken for one that has ended by the other.
func TestResetOfTheClientReachesTheServer(t *testing.T) {
	w := newWorld(t, []string{"good.test"})
	w.name("good.test", "93.184.216.1")
	ended := make(chan error, 1)
	w.serve(t, "93.184.216.1:22", func(r io.Reader, _ *net.TCPConn) {
		_, err := io.Copy(io.Discard, r)
		ended <- err
	})
	conn, _ := w.named(t, "good.test", 22)
	_, _ = io.WriteString(conn, "SSH-2.0-x\r\n")
	_ = conn.SetLinger(0)
	_ = conn.Close()
	if err := <-ended; err == nil {
		t.Error("the server sees an orderly end")
	}
}

// The end of the run ends its connections.
func TestContextEndsConnections(t *testing.T) {
	w := newWorld(t, []string{"good.test"})
	w.name("good.test", "93.184.216.1")
	w.serve(t, "93.184.216.1:22", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := tcpPair(t)
	defer ours.Close()
	served := make(chan error, 1)
	go func() { served <- w.gate.ServeConn(ctx, theirs) }()
	_, _ = io.WriteString(ours, `{"name":"good.test","addr":"198.18.0.1:22"}`+"\n")
	if v := verdictOf(t, ours); !v.OK {
		t.Fatal(v.Reason)
	}
	go func() { _, _ = io.Copy(io.Discard, ours); _ = ours.Close() }()
	cancel()
	<-served
}

// There is a bound on what a run has open, and a word about it.
func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, []string{"good.test"}, func(c *egress.Config) { c.MaxConns = 3 })
	w.name("good.test", "93.184.216.1")
	w.serve(t, "93.184.216.1:22", nil)
	for range 3 {
		if _, v := w.named(t, "good.test", 22); !v.OK {
			t.Fatal(v.Reason)
		}
	}
	_, theirs := tcpPair(t)
	defer theirs.Close()
	err := w.gate.ServeConn(t.Context(), theirs)
	if err == nil || !strings.Contains(err.Error(), "more than 3 connections") {
		t.Errorf("%v", err)
	}
	if denied, _ := w.told(); len(denied) != 1 {
		t.Errorf("told: %+v", denied)
	}
}

// A reader that stands still stops its writer; nothing piles up in between.
func TestBackpressure(t *testing.T) {
	w := newWorld(t, []string{"good.test"})
	w.name("good.test", "93.184.216.1")
	release := make(chan struct{})
	w.serve(t, "93.184.216.1:22", func(r io.Reader, _ *net.TCPConn) {
		<-release
		_, _ = io.Copy(io.Discard, r)
	})
	conn, _ := w.named(t, "good.test", 22)
	_ = conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	var sent int
	var err error
	for err == nil && sent < 256<<20 {
		var n int
		n, err = conn.Write(make([]byte, 64<<10))
		sent += n
	}
	close(release)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%d bytes were taken, %v", sent, err)
	}
}
