package link

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// maxStrangers is how many connections may be in their handshake at once.
	maxStrangers = 64
	// minStay is for how long a stranger is left alone. Without it a flood would
	// push out the host too before its answer arrives; with it a flood only fills
	// the listener's queue, where the host's next try waits its turn.
	minStay = 50 * time.Millisecond
)

// lobby holds the connections that have not proved who they are. When it is full
// the oldest is dropped: a host needs a few milliseconds, so the oldest is the
// least likely to be it.
type lobby struct {
	mu    *sync.Mutex // guards conns
	conns []stranger  // oldest first
	freed chan struct{}
}

type stranger struct {
	conn  net.Conn
	since time.Time
}

func newLobby() lobby {
	return lobby{mu: new(sync.Mutex), freed: make(chan struct{}, 1)}
}

// enter takes conn in, and perhaps drops the oldest to do so. leave must be called
// when conn is a stranger no more or closed. ok is false when ctx ended first.
func (l *lobby) enter(ctx context.Context, conn net.Conn) (leave func(), ok bool) {
	for ctx.Err() == nil {
		pause := l.tryEnter(conn)
		if pause == 0 {
			return func() { l.leave(conn) }, true
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-l.freed:
		case <-ctx.Done():
		}
		t.Stop()
	}
	return nil, false
}

// tryEnter takes conn in and returns 0, or returns how long the oldest may stay.
func (l *lobby) tryEnter(conn net.Conn) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= maxStrangers {
		if left := minStay - time.Since(l.conns[0].since); left > 0 {
			return left
		}
		_ = l.conns[0].conn.Close()
		l.conns = slices.Delete(l.conns, 0, 1)
	}
	l.conns = append(l.conns, stranger{conn, time.Now()})
	return 0
}

func (l *lobby) leave(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(s stranger) bool { return s.conn == conn })
	select {
	case l.freed <- struct{}{}:
	default:
	}
}
