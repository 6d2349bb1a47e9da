// Package relay joins a TCP connection of the agent with a stream of the link: bytes both
// ways, each direction ending for itself, with backpressure and nothing queued beyond what
// the two ends hold. It opens neither end and knows no service.
package relay

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// halfOpen is how long one direction may go on after the other has ended. The
// multiplexer has the same bound for a stream that we have closed.
const halfOpen = 5 * time.Minute

// Buffers of one direction: the small one is what an idle connection costs, the large one
// is for as long as the bytes come faster than it holds.
const (
	smallBuffer = 4 << 10
	largeBuffer = 128 << 10
)

// Relay carries connections. The zero Relay is ready to use.
type Relay struct {
	// Abrupt resets a connection whose stream has ended without a byte while the client
	// was still talking: that is how the host refuses late.
	Abrupt bool

	large sync.Pool
}

// Join carries bytes both ways until both directions have ended, one of them has long
// ended, lost is closed or ctx ends, and closes both ends. What a lost link cuts off is cut
// for the client too, so that it is not taken for the whole.
func (r *Relay) Join(ctx context.Context, conn *net.TCPConn, stream net.Conn, lost <-chan struct{}) {
	end := sync.OnceFunc(func() { HangUp(stream) })
	var quiet atomic.Bool // the client has ended its own direction
	var ways sync.WaitGroup
	ways.Go(func() { // to the host
		_, err := r.copy(stream, conn)
		quiet.Store(err == nil)
		if err != nil {
			end()
			_ = conn.Close()
			return
		}
		_ = stream.Close() // its own direction only
		_ = stream.SetReadDeadline(time.Now().Add(halfOpen))
	})
	ways.Go(func() { // to the client
		n, err := r.copy(conn, stream)
		if err != nil || closed(lost) || r.Abrupt && n == 0 && !quiet.Load() {
			Cut(conn)
			end()
			return
		}
		_ = conn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(halfOpen))
	})
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-over:
			return
		case <-lost:
		case <-ctx.Done():
		}
		Cut(conn)
		end()
	})
	ways.Wait()
	close(over)
	watching.Wait()
	end()
	_ = conn.Close()
}

// Cut ends a connection so that the other side sees an error, not an end.
func Cut(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// HangUp gives a stream up, for our reader too: a stream that is closed on one side only can
// still be read. The other side sees an error where the stream can say so.
func HangUp(conn net.Conn) {
	if c, ok := conn.(interface{ Reset() }); ok {
		c.Reset()
		return
	}
	_ = conn.SetReadDeadline(time.Unix(1, 0))
	_ = conn.Close()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
