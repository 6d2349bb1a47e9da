package link

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// listenServer runs a server on a unix socket in a fresh directory.
func listenServer(t *testing.T, boot wire.Boot, services map[string]Handler) (*Server, string) {
	t.Helper()
	dir := t.TempDir()
	ln, err := ListenUnix(dir, wire.SocketName)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(boot, services)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, ln)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s, dir
}

func dial(ctx context.Context, dir string, key HostKey) (*Session, error) {
	conn, err := DialUnix(ctx, dir, wire.SocketName)
	if err != nil {
		return nil, err
	}
	if err := HostHandshake(ctx, conn, key); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return NewSession(conn, true)
}

func mustDial(t *testing.T, dir string, key HostKey) *Session {
	t.Helper()
	s, err := dial(t.Context(), dir, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func ping(t *testing.T, s *Session) {
	t.Helper()
	conn, err := s.Open(t.Context(), "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
}

func TestNewestLinkReplacesTheOlder(t *testing.T) {
	key, boot := testKeys(t)
	_, dir := listenServer(t, boot, map[string]Handler{"echo": echo})
	first := mustDial(t, dir, key)
	ping(t, first)
	second := mustDial(t, dir, key)
	ping(t, second)
	<-first.Done()
	ping(t, second)
}

// TestStrangerDoesNotReplaceTheHost: only a finished handshake does.
func TestStrangerDoesNotReplaceTheHost(t *testing.T) {
	key, boot := testKeys(t)
	_, dir := listenServer(t, boot, map[string]Handler{"echo": echo})
	host := mustDial(t, dir, key)
	other, _ := testKeys(t)
	other.Run = key.Run
	for range 5 {
		if _, err := dial(t.Context(), dir, other); !errors.Is(err, ErrHandshake) {
			t.Fatal(err)
		}
	}
	ping(t, host)
}

// TestSilentStrangersAreBounded: with the lobby full of silent connections the
// oldest goes and the host comes in.
func TestSilentStrangersAreBounded(t *testing.T) {
	key, boot := testKeys(t)
	_, dir := listenServer(t, boot, map[string]Handler{"echo": echo})
	var strangers []net.Conn
	for range maxStrangers {
		conn, err := DialUnix(t.Context(), dir, wire.SocketName)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		strangers = append(strangers, conn)
	}
	ping(t, mustDial(t, dir, key))
	// The oldest was sent its hello, and then its end: this returns.
	_, _ = io.Copy(io.Discard, strangers[0])
}

// TestFloodDoesNotKeepTheHostOut: agents connect as fast as they can and hold what
// they get.
func TestFloodDoesNotKeepTheHostOut(t *testing.T) {
	key, boot := testKeys(t)
	_, dir := listenServer(t, boot, map[string]Handler{"echo": echo})
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() { connectForEver(ctx, dir) })
	}
	defer flood.Wait()
	defer cancel()
	within, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	for {
		host, err := dial(within, dir, key)
		if err == nil {
			ping(t, host)
			_ = host.Close()
			return
		}
		if within.Err() != nil {
			t.Fatalf("the host never came in: %v", err)
		}
	}
}

// connectForEver opens connections and keeps the last 500 of them.
func connectForEver(ctx context.Context, dir string) {
	var held []net.Conn
	for ctx.Err() == nil {
		conn, err := DialUnix(ctx, dir, wire.SocketName)
		if err != nil {
			continue
		}
		if held = append(held, conn); len(held) > 500 {
			_ = held[0].Close()
			held = held[1:]
		}
	}
	for _, conn := range held {
		_ = conn.Close()
	}
}

// TestServerOpenWaitsForAHost: a call of the agent is held until a host is there
// again, and the grace and its context bound it.
func TestServerOpenWaitsForAHost(t *testing.T) {
	key, boot := testKeys(t)
	server, dir := listenServer(t, boot, nil)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := server.Open(short, "llm", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("without a host: %v", err)
	}
	for _, grace := range []time.Duration{0, 10 * time.Millisecond} {
		if _, err := server.Open(t.Context(), "llm", grace); !errors.Is(err, ErrNoHost) {
			t.Fatalf("without a host for %v: %v", grace, err)
		}
	}
	opened, lost := make(chan error, 1), make(chan (<-chan struct{}), 1)
	go func() {
		conn, err := server.Open(t.Context(), "llm", time.Hour)
		lost <- Lost(conn)
		opened <- err
	}()
	host := mustDial(t, dir, key)
	go func() {
		_ = host.Serve(t.Context(), map[string]Handler{"llm": echo})
	}()
	gone := <-lost
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	conn, err := server.Open(t.Context(), "llm", 0) // a host that is there needs no grace
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = host.Close()
	<-gone
}

func TestServeConn(t *testing.T) {
	key, boot := testKeys(t)
	a, b := net.Pipe()
	server := NewServer(boot, map[string]Handler{"echo": echo})
	done := make(chan error, 1)
	go func() { done <- server.ServeConn(t.Context(), b) }()
	if err := HostHandshake(t.Context(), a, key); err != nil {
		t.Fatal(err)
	}
	host, err := NewSession(a, true)
	if err != nil {
		t.Fatal(err)
	}
	ping(t, host)
	_ = host.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if session, _ := server.Host(); session != nil {
		t.Fatal("a closed link is still the current one")
	}
}
