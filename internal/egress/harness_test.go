package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// internet is what stands for the world: names, and servers at addresses of it.
type internet struct {
	mu      sync.Mutex
	names   map[string][]netip.Addr
	servers map[string]*target // by the address that is dialled
	asked   []string           // names that were resolved
	dialled []string
}

func newInternet() *internet {
	return &internet{names: map[string][]netip.Addr{}, servers: map[string]*target{}}
}

func (n *internet) name(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = nil
	for _, a := range addrs {
		n.names[name] = append(n.names[name], netip.MustParseAddr(a))
	}
}

func (n *internet) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, name)
	if addrs, ok := n.names[name]; ok {
		return addrs, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (n *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, address)
	s := n.servers[address]
	n.mu.Unlock()
	if s == nil {
		return nil, errors.New("connection refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, s.ln.Addr().String())
}

// target is a server that keeps what it got.
type target struct {
	ln net.Listener
	wg sync.WaitGroup

	over bool // see ended

	mu      sync.Mutex
	got     bytes.Buffer
	seen    map[string]bool          // addresses of the clients
	waiting map[string]chan struct{} // closed when one is seen
}

// serve puts a server at an address of the internet. Without a handler it is silent, and
// keeps all that it gets.
func (n *internet) serve(t testing.TB, address string, handle func(io.Reader, *net.TCPConn)) *target {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &target{ln: ln, seen: map[string]bool{}, waiting: map[string]chan struct{}{}}
	n.mu.Lock()
	n.servers[address] = s
	n.mu.Unlock()
	if handle == nil {
		handle = func(r io.Reader, _ *net.TCPConn) { _, _ = io.Copy(io.Discard, r) }
	}
	s.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.mark(conn.RemoteAddr().String())
			s.wg.Go(func() {
				defer conn.Close()
				handle(io.TeeReader(conn, s), conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close() })
	return s
}

// Write keeps what came.
func (s *target) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

func (s *target) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// world is a gate over an internet, with what it told.
type world struct {
	*internet
	gate    *egress.Gate
	serving sync.WaitGroup

	mu      sync.Mutex
	denied  []task.Denied
	records []egress.Record
}

func newWorld(t testing.TB, rules []string, change ...func(*egress.Config)) *world {
	t.Helper()
	set, err := rule.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{internet: newInternet()}
	cfg := egress.Config{
		Set: set, Run: "run", Resolve: w.resolve, Dial: w.dial,
		OnDenied: func(d task.Denied) { w.mu.Lock(); defer w.mu.Unlock(); w.denied = append(w.denied, d) },
		Audit:    func(r egress.Record) { w.mu.Lock(); defer w.mu.Unlock(); w.records = append(w.records, r) },
	}
	for _, c := range change {
		c(&cfg)
	}
	w.gate = egress.New(cfg)
	t.Cleanup(w.gate.Close)
	return w
}

// offer offers a connection to the gate. The connection is closed, and the handler waited
// for, when the test ends.
func (w *world) offer(t testing.TB, what wire.Egress) (*net.TCPConn, wire.EgressVerdict) {
	t.Helper()
	ours, theirs := tcpPair(t)
	w.serving.Go(func() {
		_ = w.gate.ServeConn(t.Context(), theirs)
		_ = theirs.Close()
	})
	t.Cleanup(func() {
		_ = ours.Close()
		w.serving.Wait()
	})
	_ = ours.SetDeadline(time.Now().Add(20 * time.Second))
	line, _ := json.Marshal(what)
	if _, err := ours.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	return ours, verdictOf(t, ours)
}

func verdictOf(t testing.TB, conn io.Reader) wire.EgressVerdict {
	t.Helper()
	var v wire.EgressVerdict
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatalf("the verdict: %v", err)
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	if len(line) >= wire.MaxEgressLine {
		t.Fatalf("a verdict of %d bytes", len(line))
	}
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// named offers a connection to a name, as the sandbox does.
func (w *world) named(t testing.TB, name string, port int) (*net.TCPConn, wire.EgressVerdict) {
	t.Helper()
	return w.offer(t, wire.Egress{Name: name, Addr: fmt.Sprintf("198.18.0.9:%d", port)})
}

// say sends what a client says, ends its direction, and returns what it is told.
func say(t testing.TB, conn *net.TCPConn, text string) string {
	t.Helper()
	_, _ = io.WriteString(conn, text)
	_ = conn.CloseWrite()
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func (w *world) told() (denied []task.Denied, records []egress.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(denied, w.denied...), append(records, w.records...)
}

func tcpPair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	x, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return x.(*net.TCPConn), y.(*net.TCPConn)
}

// respond answers each request of a connection with a small page.
func respond(r io.Reader, conn *net.TCPConn) {
	in := bufio.NewReader(r)
	for {
		blank := false
		for !blank {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			blank = line == "\r\n"
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

// ended waits until the gate has let go of every connection, and returns all that a server
// then has got from any.
func (w *world) ended(t testing.TB, s *target) string {
	t.Helper()
	w.serving.Wait()
	if s.over {
		return s.log()
	}
	s.over = true
	// Connections are accepted in turn: behind this one there is no other.
	last, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = last.Close()
	<-s.marked(last.LocalAddr().String())
	_ = s.ln.Close()
	s.wg.Wait()
	return s.log()
}

// marked is closed when a connection from an address was accepted.
func (s *target) marked(address string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	if s.seen[address] {
		close(c)
	} else {
		s.waiting[address] = c
	}
	return c
}

func (s *target) mark(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[address] = true
	if c := s.waiting[address]; c != nil {
		close(c)
		delete(s.waiting, address)
	}
}
