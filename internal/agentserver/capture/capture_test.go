package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
)

// hangs tells an answer from a hang.
const hangs = 30 * time.Second

// serving is a server on loopback, with a host that does as handle says. There are no nat
// rules, and so every connection has dialled the sandbox itself: for another address there
// are the tests of the providers.
type serving struct {
	*Server
	t    *testing.T
	stop context.CancelFunc
	done chan struct{}
}

func serve(t *testing.T, open func(ctx context.Context) (net.Conn, error)) *serving {
	t.Helper()
	listen := func() *net.TCPListener {
		ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &serving{t: t, stop: stop, done: make(chan struct{}), Server: New(Config{
		TCP: []*net.TCPListener{listen()}, DNS: listen(), UDP: udp, Local: true, Names: rule.Set{}, Open: open,
	})}
	go func() { s.Serve(ctx); close(s.done) }()
	t.Cleanup(func() { stop(); <-s.done })
	return s
}

func (s *serving) dial(ln *net.TCPListener) *net.TCPConn {
	s.t.Helper()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(hangs))
	return conn.(*net.TCPConn)
}

// isReset dials, and is reset, perhaps before it knows that it is connected.
func isReset(t *testing.T, ln *net.TCPListener) {
	t.Helper()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(hangs))
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}

// TestServeEnds: nothing of it is left, whatever its clients do.
func TestServeEnds(t *testing.T) {
	s := serve(t, func(context.Context) (net.Conn, error) { return nil, errors.New("no host") })
	idle := s.dial(s.DNS)
	s.stop()
	<-s.done
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a connection goes on")
	}
	for _, ln := range []*net.TCPListener{s.TCP[0], s.DNS} {
		if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			_ = conn.Close()
			t.Errorf("%s is open", ln.Addr())
		}
	}
}

// TestTheSandboxItselfIsNotOffered: without nat rules a port of the policy is also met on
// loopback, which is nobody's to reach through the host.
func TestTheSandboxItselfIsNotOffered(t *testing.T) {
	s := serve(t, func(context.Context) (net.Conn, error) {
		t.Error("the host was asked")
		return nil, errors.New("no")
	})
	isReset(t, s.TCP[0])
}

func TestTooManyConnectionsAreReset(t *testing.T) {
	s := New(Config{})
	s.slots = make(chan struct{})
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.serve(ctx, ln); close(done) }()
	isReset(t, ln)
	cancel()
	_ = ln.Close()
	<-done
}

// ask asks a host that answers with one line.
func ask(t *testing.T, answer string, req wire.Egress) (net.Conn, wire.Egress, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	heard := make(chan wire.Egress, 1)
	go func() {
		defer close(heard)
		var got wire.Egress
		line, err := bufio.NewReaderSize(theirs, wire.MaxEgressLine).ReadSlice('\n')
		if err != nil || json.Unmarshal(line, &got) != nil {
			return
		}
		heard <- got
		_, _ = io.WriteString(theirs, answer)
		if answer == "" {
			_ = theirs.Close()
		}
	}()
	s := New(Config{Open: func(context.Context) (net.Conn, error) { return ours, nil }})
	stream, err := s.ask(t.Context(), req)
	return stream, <-heard, err
}

func TestTheHostIsAsked(t *testing.T) {
	req := wire.Egress{Name: "a.example", Addr: "198.18.0.1:443"}
	stream, heard, err := ask(t, `{"ok":true}`+"\nrest", req)
	if err != nil || heard != req {
		t.Fatalf("%+v, %v", heard, err)
	}
	rest := make([]byte, 4)
	if _, err := io.ReadFull(stream, rest); err != nil || string(rest) != "rest" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestVerdictsThatAreNone(t *testing.T) {
	for name, answer := range map[string]string{
		"refused": `{"ok":false,"reason":"no rule"}` + "\n", "nothing": "", "garbage": "yes\n", "empty": "\n", "array": "[]\n",
		"endless": strings.Repeat(" ", 2*wire.MaxEgressLine),
	} {
		if stream, _, err := ask(t, answer, wire.Egress{Addr: "1.2.3.4:443"}); err == nil || stream != nil {
			t.Errorf("%s: the connection is made", name)
		}
	}
	if _, _, err := ask(t, `{"ok":false,"reason":"no rule"}`+"\n", wire.Egress{Addr: "1.2.3.4:443"}); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "no rule") {
		t.Error(err)
	}
}

// TestAHostThatDoesNotAnswer: the wait ends with its context.
func TestAHostThatDoesNotAnswer(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	s := New(Config{Open: func(context.Context) (net.Conn, error) { return ours, nil }})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = bufio.NewReader(theirs).ReadString('\n')
		cancel()
	}()
	if _, err := s.ask(ctx, wire.Egress{Addr: "1.2.3.4:1"}); err == nil {
		t.Error("a verdict came of nothing")
	}
}

func TestRequests(t *testing.T) {
	s := New(Config{})
	addr, _ := s.table.address("a.example")
	for to, want := range map[string]wire.Egress{
		addr.String() + ":22": {Name: "a.example", Addr: addr.String() + ":22"},
		"198.19.0.9:22":       {Addr: "198.19.0.9:22"},
		"1.2.3.4:15001":       {Addr: "1.2.3.4:15001"},
		"127.0.0.1:15001":     {Proxy: true},
	} {
		got, release := s.request(netip.MustParseAddrPort(to))
		if release(); got != want {
			t.Errorf("%s: %+v", to, got)
		}
	}
	if s.table.byName["a.example"].live != 0 {
		t.Error("a connection that has ended counts")
	}
}
