package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// pair makes the two ends of a link.
func pair(t testing.TB, a, b net.Conn) (host, server *Session) {
	t.Helper()
	host, err := NewSession(a, true)
	if err != nil {
		t.Fatal(err)
	}
	server, err = NewSession(b, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Close()
		_ = server.Close()
	})
	return host, server
}

// served returns the host's end of a link whose other end serves services.
func served(t *testing.T, services map[string]Handler) *Session {
	t.Helper()
	a, b := net.Pipe()
	host, server := pair(t, a, b)
	done := make(chan error, 1)
	go func() { done <- server.Serve(t.Context(), services) }()
	t.Cleanup(func() {
		_ = host.Close()
		<-done
	})
	return host
}

func echo(_ context.Context, conn net.Conn) error {
	_, err := io.Copy(conn, conn)
	return err
}

func TestSessionCarriesManyStreams(t *testing.T) {
	host := served(t, map[string]Handler{"echo": echo})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			conn, err := host.Open(t.Context(), "echo")
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			want := bytes.Repeat([]byte{byte(i)}, 100_000)
			all.Go(func() { _, _ = conn.Write(want) })
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// TestSlowReaderDoesNotHoldUpTheOthers: a stream that nobody reads fills its own
// window and no more.
func TestSlowReaderDoesNotHoldUpTheOthers(t *testing.T) {
	host := served(t, map[string]Handler{
		"echo": echo,
		"flood": func(_ context.Context, conn net.Conn) error {
			for {
				if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
			}
		},
	})
	if _, err := host.Open(t.Context(), "flood"); err != nil {
		t.Fatal(err)
	}
	conn, err := host.Open(t.Context(), "echo")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := conn.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	host := served(t, map[string]Handler{
		"no":   func(context.Context, net.Conn) error { return errors.New("not\x1b[31m today\n") },
		"long": func(context.Context, net.Conn) error { return errors.New(strings.Repeat("é", 5000)) },
		"yes":  func(context.Context, net.Conn) error { return nil },
	})
	for service, want := range map[string]string{
		"what":                     "unknown service what",
		"no":                       "not?[31m today?",
		"long":                     "éééé",
		"":                         "unknown service",
		"a\nb":                     "bad service name",
		strings.Repeat("x", 10000): "bad service name",
	} {
		_, err := host.Open(t.Context(), service)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", service, err)
		}
	}
	if _, err := host.Open(t.Context(), "no"); !errors.Is(err, ErrRefused) {
		t.Errorf("no: %v", err)
	}
	if _, err := host.Open(t.Context(), "yes"); err != nil {
		t.Errorf("yes: %v", err)
	}
}

func TestServicesTakeAnArgument(t *testing.T) {
	host := served(t, map[string]Handler{"egress": func(_ context.Context, conn net.Conn) error {
		_, err := io.WriteString(conn, Arg(conn))
		return err
	}})
	conn, err := host.Open(t.Context(), "egress example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if string(got) != "example.com:443" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestOpenWaitsForTheHandlersVerdict: a handler that dials first can still refuse.
func TestOpenWaitsForTheHandlersVerdict(t *testing.T) {
	verdict := make(chan error)
	host := served(t, map[string]Handler{"egress": func(context.Context, net.Conn) error { return <-verdict }})
	go func() { verdict <- errors.New("no route") }()
	if _, err := host.Open(t.Context(), "egress x:1"); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	a, b := net.Pipe()
	host, _ := pair(t, a, b) // nobody serves
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := host.Open(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestOpenOnAClosedLink(t *testing.T) {
	a, b := net.Pipe()
	host, server := pair(t, a, b)
	_ = server.Close()
	<-host.Done()
	if _, err := host.Open(t.Context(), "x"); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// TestServeEndsItsHandlers: when the link ends, every handler is told and waited
// for.
func TestServeEndsItsHandlers(t *testing.T) {
	a, b := net.Pipe()
	host, server := pair(t, a, b)
	started, ended := make(chan struct{}), false
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(t.Context(), map[string]Handler{"wait": func(ctx context.Context, conn net.Conn) error {
			_, _ = conn.Write([]byte("x"))
			close(started)
			<-ctx.Done()
			ended = true
			return nil
		}})
	}()
	if _, err := host.Open(t.Context(), "wait"); err != nil {
		t.Fatal(err)
	}
	<-started
	_ = host.Close()
	if err := <-done; err != nil || !ended {
		t.Fatalf("%v, handler ended: %v", err, ended)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	a, b := net.Pipe()
	_, server := pair(t, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Serve(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestSilentStreamIsDropped: a stream that never names its service does not stay.
// (The multiplexer itself does not run under synctest: its timers are pooled.)
func TestSilentStreamIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		go (&serving{}).stream(t.Context(), b)
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}

// TestConnectionsOfASandboxAreCountedApart: as many as it may have leave the other services
// their own streams, and the other way round.
func TestConnectionsOfASandboxAreCountedApart(t *testing.T) {
	hold := func(ctx context.Context, conn net.Conn) error {
		_, _ = conn.Read(make([]byte, 1))
		return nil
	}
	host := served(t, map[string]Handler{wire.ServiceEgress: hold, "other": hold})
	open := func(service string) error {
		conn, err := host.Open(t.Context(), service)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
		return err
	}
	for i := range maxStreams {
		if err := open("other"); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	if err := open("other"); !errors.Is(err, ErrRefused) {
		t.Errorf("one too many: %v", err)
	}
	for i := range maxEgress {
		if err := open(wire.ServiceEgress); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
}

// TestGarbageEndsTheLink: an authenticated peer that breaks the multiplexer's rules
// loses the link, and nobody panics.
func TestGarbageEndsTheLink(t *testing.T) {
	for name, garbage := range map[string]string{
		"text":          "GET / HTTP/1.1\r\n\r\n",
		"unknown type":  "\x00\x09\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00",
		"beyond window": "\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			server, err := NewSession(b, false)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, a) }()
			go func() { _, _ = io.WriteString(a, garbage) }()
			if err := server.Serve(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			_ = a.Close()
		})
	}
}
