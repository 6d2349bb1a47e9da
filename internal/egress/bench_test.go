package egress_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// linked joins two sessions by a unix socket, the host's of which serves handle. What is
// returned is the sandbox's.
func linked(t testing.TB, handle link.Handler) *link.Session {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	host, err := link.NewSession(near, true)
	if err != nil {
		t.Fatal(err)
	}
	sandbox, err := link.NewSession(far, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = host.Serve(ctx, map[string]link.Handler{wire.ServiceEgress: handle, servicePlain: handle})
	}()
	t.Cleanup(func() {
		_ = sandbox.Close()
		cancel()
		<-served
	})
	return sandbox
}

// servicePlain is a service whose streams are those of the multiplexer.
const servicePlain = "plain"

// opened opens a stream of a service and offers good.test at a port on it.
func opened(t testing.TB, s *link.Session, service string, port int) net.Conn {
	t.Helper()
	conn, err := s.Open(context.Background(), service)
	if err != nil {
		t.Fatal(err)
	}
	line, _ := json.Marshal(wire.Egress{Name: "good.test", Addr: fmt.Sprintf("198.18.0.9:%d", port)})
	if _, err := conn.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if v := verdictOf(t, conn); !v.OK {
		t.Fatal(v.Reason)
	}
	return conn
}

// plainCopy is what the gate is compared to: it dials, and copies.
func plainCopy(n *internet) link.Handler {
	return func(ctx context.Context, conn net.Conn) error {
		if _, err := readTestLine(conn); err != nil {
			return err
		}
		target, err := n.dial(ctx, "tcp", "93.184.216.1:22")
		if err != nil {
			return err
		}
		defer target.Close()
		_, _ = io.WriteString(conn, `{"ok":true}`+"\n")
		var ways sync.WaitGroup
		ways.Go(func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{target}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
			_ = target.(*net.TCPConn).CloseWrite()
		})
		ways.Go(func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{target}, make([]byte, 256<<10))
			_ = conn.Close()
		})
		ways.Wait()
		return nil
	}
}

func readTestLine(r io.Reader) ([]byte, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, b); err != nil || b[0] == '\n' {
			return line, err
		}
		line = append(line, b[0])
	}
}

// BenchmarkOneStream carries bytes from a TCP client over the link to a TCP server, through
// the gate and through a plain copy.
func BenchmarkOneStream(b *testing.B) {
	for _, way := range []string{"up", "down"} {
		for _, through := range []string{"plain", "other", "tls", "http"} {
			b.Run(way+"/"+through, func(b *testing.B) { oneStream(b, way == "up", through) })
		}
	}
}

const benchChunk = 256 << 10

func oneStream(b *testing.B, up bool, through string) {
	w := newWorld(b, []string{"good.test"})
	w.name("good.test", "93.184.216.1")
	port, first, handle, service := 22, "", w.gate.ServeConn, wire.ServiceEgress
	switch through {
	case "plain":
		handle, service = plainCopy(w.internet), servicePlain
	case "tls":
		port, first = 443, string(hello(names("good.test")))
	case "http":
		port, first = 80, fmt.Sprintf("POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: %d\r\n\r\n", int64(b.N)*benchChunk)
		if !up {
			first = plain
		}
	}
	over := make(chan int64, 1)
	w.serve(b, fmt.Sprintf("93.184.216.1:%d", port), func(_ io.Reader, conn *net.TCPConn) {
		if up {
			n, _ := io.CopyBuffer(io.Discard, struct{ io.Reader }{conn}, make([]byte, benchChunk))
			over <- n
			return
		}
		if _, err := conn.Read(make([]byte, 4<<10)); err != nil {
			return
		}
		chunk := make([]byte, benchChunk)
		for range b.N {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	})
	stream := opened(b, linked(b, handle), service, port)
	client, inside := tcpPair(b) // the program's connection, and what PID 1 makes of it
	defer client.Close()
	go copyBetween(inside, stream)
	if first == "" {
		first = "\x00"
	}
	_, _ = io.WriteString(client, first)
	b.SetBytes(benchChunk)
	b.ResetTimer()
	if up {
		chunk := make([]byte, benchChunk)
		for range b.N {
			if _, err := client.Write(chunk); err != nil {
				b.Fatal(err)
			}
		}
		_ = client.CloseWrite()
		if n := <-over; n < int64(b.N)*benchChunk {
			b.Fatalf("%d bytes arrived", n)
		}
		return
	}
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{client}, make([]byte, benchChunk))
	if err != nil || n < int64(b.N)*benchChunk {
		b.Fatalf("%d bytes arrived, %v", n, err)
	}
}

// copyBetween is what PID 1 does.
func copyBetween(conn *net.TCPConn, stream net.Conn) {
	var ways sync.WaitGroup
	ways.Go(func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{stream}, struct{ io.Reader }{conn}, make([]byte, 128<<10))
		_ = stream.Close()
	})
	ways.Go(func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{stream}, make([]byte, 128<<10))
		_ = conn.CloseWrite()
	})
	ways.Wait()
	_ = conn.Close()
}

// BenchmarkConnection is a connection with one byte each way, from the offer on.
func BenchmarkConnection(b *testing.B) {
	for _, through := range []string{"plain", "gate"} {
		b.Run(through, func(b *testing.B) {
			w := newWorld(b, []string{"good.test"})
			w.name("good.test", "93.184.216.1")
			w.serve(b, "93.184.216.1:22", func(_ io.Reader, conn *net.TCPConn) { _, _ = io.Copy(conn, conn) })
			handle, service := w.gate.ServeConn, wire.ServiceEgress
			if through == "plain" {
				handle, service = plainCopy(w.internet), servicePlain
			}
			s := linked(b, handle)
			for b.Loop() {
				conn := opened(b, s, service, 22)
				_, _ = conn.Write([]byte{0})
				if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				_ = conn.Close()
				_, _ = io.Copy(io.Discard, conn)
			}
		})
	}
}

// BenchmarkDenied is a connection that is refused.
func BenchmarkDenied(b *testing.B) {
	w := newWorld(b, []string{"good.test"})
	s := linked(b, w.gate.ServeConn)
	for b.Loop() {
		conn, err := s.Open(context.Background(), wire.ServiceEgress)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.WriteString(conn, `{"name":"evil.test","addr":"198.18.0.9:443"}`+"\n")
		if v := verdictOf(b, conn); v.OK {
			b.Fatal("let through")
		}
		_ = conn.Close()
	}
}
