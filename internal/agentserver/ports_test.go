//go:build linux

package agentserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// served is a sandbox with ports, and where they are.
type served struct {
	*sandbox
	addr string // of llm
	mcp  string
}

func newServed(t *testing.T, grace time.Duration) *served {
	t.Helper()
	s := &served{}
	s.sandbox = newSandbox(t, func(b *wire.Boot) {
		llm, mcp := freePort(t), freePort(t)
		b.HostGrace = grace
		b.Ports = map[string]int{wire.ServiceLLM: llm, wire.ServiceMCP: mcp}
		s.addr, s.mcp = loopback(llm), loopback(mcp)
	})
	return s
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}

// host connects a host that serves llm with handle.
func (s *served) host(handle link.Handler) *agent.Client {
	s.t.Helper()
	c, err := agent.Connect(s.t.Context(), s.ln.dial(s.t), s.key, map[string]link.Handler{wire.ServiceLLM: handle})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// dial waits for the server to listen.
func (s *served) dial(addr string) *net.TCPConn {
	s.t.Helper()
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			s.t.Cleanup(func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(hangs))
			return conn.(*net.TCPConn)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			s.t.Fatal(err)
		}
		runtime.Gosched()
	}
}

func echoStream(_ context.Context, conn net.Conn) error {
	_, err := io.Copy(conn, conn)
	return err
}

// TestPortCarriesBothWays: raw bytes, and each direction ends for itself.
func TestPortCarriesBothWays(t *testing.T) {
	s := newServed(t, time.Minute)
	s.host(func(_ context.Context, conn net.Conn) error {
		b, err := io.ReadAll(conn) // the client's end arrives
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, strings.ToUpper(string(b)))
		return err
	})
	conn := s.dial(s.addr)
	question := strings.Repeat("question ", 100_000)
	go func() {
		_, _ = io.WriteString(conn, question)
		_ = conn.CloseWrite()
	}()
	b, err := io.ReadAll(conn)
	if err != nil || string(b) != strings.ToUpper(question) {
		t.Errorf("%d bytes of %d, %v", len(b), len(question), err)
	}
}

func TestPortEndsWhenTheHostIsDone(t *testing.T) {
	s := newServed(t, time.Minute)
	s.host(func(_ context.Context, conn net.Conn) error {
		_, err := io.WriteString(conn, "bye")
		return err
	})
	conn := s.dial(s.addr)
	if b, err := io.ReadAll(conn); err != nil || string(b) != "bye" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestPortIsHeldForAHost: a request that comes while there is no host is answered by
// the next one.
func TestPortIsHeldForAHost(t *testing.T) {
	s := newServed(t, time.Minute)
	conn := s.dial(s.addr)
	if _, err := io.WriteString(conn, "early\n"); err != nil {
		t.Fatal(err)
	}
	s.host(echoStream)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "early\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestPortAnswersWithoutAHost(t *testing.T) {
	for _, grace := range []time.Duration{0, 50 * time.Millisecond} {
		t.Run(grace.String(), func(t *testing.T) {
			s := newServed(t, grace)
			s.refused(s.addr, "there is no host")
		})
	}
}

func TestPortAnswersForAServiceThatTheHostHasNot(t *testing.T) {
	s := newServed(t, time.Hour)
	s.host(echoStream)
	_ = s.dial(s.mcp)
	s.refused(s.mcp, "unknown service mcp")
}

// refused sends a large request and wants the whole answer.
func (s *served) refused(addr, reason string) {
	s.t.Helper()
	_ = s.dial(addr).Close() // so that it listens
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: hangs}
	body := strings.NewReader(strings.Repeat("x", 2<<20))
	resp, err := client.Post("http://"+addr+"/v1/messages", "text/plain", body)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !resp.Close {
		s.t.Errorf("%v, %v", resp, err)
	}
	if !strings.Contains(string(b), `{"error":{"message":"`) || !strings.Contains(string(b), reason) {
		s.t.Errorf("%s", b)
	}
}

// TestPortIsCutWithTheHost: an answer that the death of the host cuts off must not look
// like a whole one.
func TestPortIsCutWithTheHost(t *testing.T) {
	s := newServed(t, time.Hour)
	c := s.host(func(ctx context.Context, conn net.Conn) error {
		_, _ = io.WriteString(conn, "half an ans")
		<-ctx.Done()
		return nil
	})
	conn := s.dial(s.addr)
	half := make([]byte, len("half an ans"))
	if _, err := io.ReadFull(conn, half); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if n, err := conn.Read(half); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestClientThatLeavesIsNotCarried: its request would cost money and help nobody.
func TestClientThatLeavesIsNotCarried(t *testing.T) {
	s := newServed(t, time.Hour)
	for range 3 {
		conn := s.dial(s.addr)
		if _, err := io.WriteString(conn, "abandoned\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.CloseWrite()
		if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 503 ") {
			t.Errorf("%q, %v", b, err)
		}
	}
	asked := make(chan string, 4)
	s.host(func(_ context.Context, conn net.Conn) error {
		line, err := bufio.NewReader(conn).ReadString('\n')
		asked <- line
		return err
	})
	if _, err := io.WriteString(s.dial(s.addr), "wanted\n"); err != nil {
		t.Fatal(err)
	}
	if line := <-asked; line != "wanted\n" {
		t.Errorf("the host was asked %q", line)
	}
}

// TestPortsEndWithTheServer: held, refused and carried connections alike.
func TestPortsEndWithTheServer(t *testing.T) {
	s := newServed(t, time.Hour)
	held := s.dial(s.mcp)
	c := s.host(echoStream)
	carried := s.dial(s.addr)
	_, _ = io.WriteString(carried, "x")
	if _, err := io.ReadFull(carried, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	_ = c.Close()
	for _, conn := range []net.Conn{held, carried} {
		if _, err := io.ReadAll(conn); errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", s.addr); err == nil {
		_ = conn.Close()
		t.Error("it listens on")
	}
}

// TestManyConnections are carried at the same time, more than a service has slots.
func TestManyConnections(t *testing.T) {
	s := newServed(t, time.Minute)
	s.host(echoStream)
	_ = s.dial(s.addr).Close()
	ended := make(chan error, 300)
	for i := range cap(ended) {
		go func() { ended <- pingPort(s.addr, fmt.Sprintf("ping %d\n", i)) }()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

func pingPort(addr, line string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(hangs))
	if _, err := io.WriteString(conn, line); err != nil {
		return err
	}
	got, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && got != line {
		err = fmt.Errorf("%q for %q", got, line)
	}
	return err
}

func TestPortThatIsTakenEndsTheServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	s := newSandbox(t, func(b *wire.Boot) {
		b.Ports = map[string]int{wire.ServiceAPI: ln.Addr().(*net.TCPAddr).Port}
	})
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "serve api: ") {
		t.Error(err)
	}
}
