package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// joined is a client whose connection is joined with a stream, and the stream's other end.
// The stream is a TCP connection too: it can be closed on one side.
type joined struct {
	client, host *net.TCPConn
	lost         chan struct{}
	stop         context.CancelFunc
	done         chan struct{}
}

// halves closes the sending half only, as streams of the link do.
type halves struct{ *net.TCPConn }

// Close implements net.Conn.
func (h halves) Close() error { return h.CloseWrite() }

func connected(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	out, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := ln.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close(); _ = in.Close() })
	_ = out.SetDeadline(time.Now().Add(time.Minute))
	return out.(*net.TCPConn), in
}

func join(t *testing.T, r *Relay) *joined {
	t.Helper()
	j := &joined{lost: make(chan struct{}), done: make(chan struct{})}
	var conn, stream *net.TCPConn
	j.client, conn = connected(t)
	j.host, stream = connected(t)
	ctx, stop := context.WithCancel(t.Context())
	j.stop = stop
	go func() {
		r.Join(ctx, conn, halves{stream}, j.lost)
		close(j.done)
	}()
	t.Cleanup(func() { stop(); _ = j.host.Close(); <-j.done })
	return j
}

// TestBytesGoBothWays: in pieces of every size, each direction ending for itself.
func TestBytesGoBothWays(t *testing.T) {
	j := join(t, &Relay{})
	var all []byte
	go func() {
		for size := 1; size < 1<<20; size = size*3 + 1 {
			_, _ = j.client.Write(bytes.Repeat([]byte{byte(size)}, size))
		}
		_ = j.client.CloseWrite()
	}()
	for size := 1; size < 1<<20; size = size*3 + 1 {
		all = append(all, bytes.Repeat([]byte{byte(size)}, size)...)
	}
	got, err := io.ReadAll(j.host)
	if err != nil || !bytes.Equal(got, all) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(all), err)
	}
	go func() { _, _ = j.host.Write(all); _ = j.host.CloseWrite() }()
	if got, err = io.ReadAll(j.client); err != nil || !bytes.Equal(got, all) {
		t.Fatalf("%d bytes of %d back, %v", len(got), len(all), err)
	}
	<-j.done
}

func reset(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client sees %v", err)
	}
}

func TestALostLinkCuts(t *testing.T) {
	j := join(t, &Relay{})
	close(j.lost)
	reset(t, j.client)
}

func TestTheEndCuts(t *testing.T) {
	j := join(t, &Relay{})
	j.stop()
	reset(t, j.client)
}

// TestAbrupt: a stream that ends without a word is a refusal, unless the client had ended
// before, or a word was said, or nobody asked for it.
func TestAbrupt(t *testing.T) {
	j := join(t, &Relay{Abrupt: true})
	_, _ = j.client.Write([]byte("x"))
	_ = j.host.CloseWrite()
	reset(t, j.client)

	for name, c := range map[string]struct {
		relay *Relay
		first func(j *joined)
	}{
		"not abrupt": {&Relay{}, func(*joined) {}},
		"a word":     {&Relay{Abrupt: true}, func(j *joined) { _, _ = j.host.Write([]byte("x")) }},
		"had ended": {&Relay{Abrupt: true}, func(j *joined) {
			_ = j.client.CloseWrite()
			_, _ = j.host.Read(make([]byte, 1))
		}},
	} {
		j := join(t, c.relay)
		c.first(j)
		_ = j.host.CloseWrite()
		if _, err := io.ReadAll(j.client); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
