package link

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// BenchmarkEvents is the events stream at its busiest: frames of 64 KiB from PID 1
// to the host over a unix socket.
func BenchmarkEvents(b *testing.B) {
	host, server := benchSessions(b)
	data := make([]byte, wire.MaxChunk)
	b.SetBytes(wire.MaxChunk)
	b.ReportAllocs()
	frames := b.N
	go func() {
		_ = server.Serve(b.Context(), map[string]Handler{"events": func(_ context.Context, conn net.Conn) error {
			w := wire.NewFrameWriter(conn)
			for i := range frames {
				if err := w.Write(&wire.Frame{Type: wire.FrameStdout, Seq: uint64(i) + 1, Data: data}); err != nil {
					return err
				}
			}
			return w.Flush()
		}})
	}()
	conn, err := host.Open(b.Context(), "events")
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	r := wire.NewFrameReader(conn)
	var f wire.Frame
	n := 0
	for ; ; n++ {
		if err := r.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
	}
	if n != frames {
		b.Fatalf("%d frames of %d", n, frames)
	}
}

func benchSessions(b *testing.B) (host, server *Session) {
	b.Helper()
	dir := b.TempDir()
	ln, err := ListenUnix(dir, "s")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	client, err := DialUnix(b.Context(), dir, "s")
	if err != nil {
		b.Fatal(err)
	}
	peer, err := ln.Accept()
	if err != nil {
		b.Fatal(err)
	}
	return pair(b, client, peer)
}
