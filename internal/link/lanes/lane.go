package lanes

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// block holds received bytes.
type block struct {
	b        [blockSize]byte
	from, to int
}

// Lane is one connection of a carrier. Close ends what is written, and only that: what the
// other side still sends can be read, as with a stream of the link. A lane that is not read to
// its end is given up by [Lane.Reset].
type Lane struct {
	mux *Mux
	id  uint32

	readable, writable chan struct{} // of one reader, of one writer
	readBy, writeBy    deadline

	sending sync.Mutex // held by a Write, so that two do not mix

	mu      sync.Mutex // guards what follows; taken before the carrier's, never after
	blocks  []*block   // what has been received
	size    int        // bytes in blocks
	window  int
	granted int  // what the other side may still send
	used    int  // read since the last credit; granted, size and used are the window
	hungry  bool // the other side has sent all that it might
	credit  int  // what this side may still send
	ended   bool
	closed  bool
	reset   bool
	over    bool // forgotten
}

var _ net.Conn = (*Lane)(nil)

// Read implements net.Conn.
func (l *Lane) Read(p []byte) (int, error) {
	for {
		l.mu.Lock()
		switch {
		case l.size > 0:
			n, credit := l.take(p)
			l.mu.Unlock()
			notify(l.readable) // for another reader, and what is left
			l.give(credit)
			return n, nil
		case l.ended:
			l.mu.Unlock()
			return 0, io.EOF
		case l.reset:
			l.mu.Unlock()
			return 0, ErrReset
		}
		l.mu.Unlock()
		select {
		case <-l.readable:
		case <-l.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case <-l.mux.done:
			return 0, ErrClosed
		}
	}
}

// take copies received bytes to p, and says how much the other side may send in return.
func (l *Lane) take(p []byte) (n, credit int) {
	for n < len(p) && len(l.blocks) > 0 {
		b := l.blocks[0]
		c := copy(p[n:], b.b[b.from:b.to])
		n += c
		if b.from += c; b.from == b.to {
			l.blocks = l.blocks[1:]
			l.mux.blocks.Put(b)
		}
	}
	if len(l.blocks) == 0 {
		l.blocks = nil
	}
	l.size -= n
	l.used += n
	if l.used < l.window/2 || l.ended || l.reset {
		return n, 0
	}
	// All is read and the sender has had to wait: the window is too small for this reader.
	if l.hungry && l.size == 0 && l.window < maxWindow && l.mux.grow(l.window) {
		l.used += l.window
		l.window *= 2
	}
	credit, l.hungry = l.used, false
	l.granted += credit
	l.used = 0
	return n, credit
}

// give tells the other side that it may send more.
func (l *Lane) give(credit int) {
	if credit > 0 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(credit))
		_ = l.mux.send(frameCredit, l.id, b[:]) // the end of the carrier is met by the next Read
	}
}

// Write implements net.Conn.
func (l *Lane) Write(p []byte) (n int, err error) {
	l.sending.Lock()
	defer l.sending.Unlock()
	for n < len(p) {
		c, kind, err := l.reserve(min(len(p)-n, maxData))
		if err != nil {
			return n, err
		}
		if err := l.mux.send(kind, l.id, p[n:n+c]); err != nil {
			return n, err
		}
		n += c
	}
	return n, nil
}

// reserve waits until something may be sent, takes up to n of it, and says as which kind of
// frame.
func (l *Lane) reserve(n int) (taken int, kind byte, err error) {
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			return 0, 0, net.ErrClosed
		case l.reset:
			l.mu.Unlock()
			return 0, 0, ErrReset
		case l.credit > 0:
			n = min(n, l.credit)
			kind = frameData
			if l.credit -= n; l.credit == 0 {
				kind = frameLast
			}
			l.mu.Unlock()
			return n, kind, nil
		}
		l.mu.Unlock()
		select {
		case <-l.writable:
		case <-l.writeBy.passed():
			return 0, 0, os.ErrDeadlineExceeded
		case <-l.mux.done:
			return 0, 0, ErrClosed
		}
	}
}

// receive takes the data of a frame.
func (l *Lane) receive(data []byte, last bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(data) > l.granted || l.ended {
		return errProtocol
	}
	l.granted -= len(data)
	l.hungry = l.hungry || last
	if l.reset {
		return nil
	}
	l.size += len(data)
	for len(data) > 0 {
		b := l.tail()
		n := copy(b.b[b.to:], data)
		b.to += n
		data = data[n:]
	}
	notify(l.readable)
	return nil
}

// tail is a block with room.
func (l *Lane) tail() *block {
	if n := len(l.blocks); n > 0 && l.blocks[n-1].to < blockSize {
		return l.blocks[n-1]
	}
	b := l.mux.blocks.Get().(*block)
	b.from, b.to = 0, 0
	l.blocks = append(l.blocks, b)
	return b
}

func (l *Lane) receiveCredit(n uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > maxWindow || l.credit+int(n) > maxWindow {
		return errProtocol
	}
	l.credit += int(n)
	notify(l.writable)
	return nil
}

// receiveEnd takes the other side's end, or its reset. What came before can still be read
// where it had ended in order.
func (l *Lane) receiveEnd(reset bool) {
	l.mu.Lock()
	if reset {
		l.reset = true
		if !l.ended {
			l.drop()
		}
	}
	l.ended = l.ended || !reset
	l.settle()
	l.mu.Unlock()
	notify(l.readable)
	notify(l.writable)
}

// drop gives back what has been received.
func (l *Lane) drop() {
	for _, b := range l.blocks {
		l.mux.blocks.Put(b)
	}
	l.blocks, l.size = nil, 0
}

// settle forgets a lane when nothing more can come of it. What was received is kept.
func (l *Lane) settle() {
	if l.over || !l.reset && !(l.ended && l.closed) {
		return
	}
	l.over = true
	l.mux.forget(l, l.window-firstWindow)
}

// Close implements net.Conn: it ends what is written.
func (l *Lane) Close() error {
	l.mu.Lock()
	tell := !l.closed && !l.reset
	l.closed = true
	l.mu.Unlock()
	notify(l.writable)
	if tell {
		l.sending.Lock() // behind what is being written
		_ = l.mux.send(frameEnd, l.id, nil)
		l.sending.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return nil
}

// Reset gives the lane up: the other side meets an error, unless it was told the end before,
// and nothing more is taken from it.
func (l *Lane) Reset() {
	l.mu.Lock()
	tell := !l.over
	l.reset = true
	l.drop()
	l.settle()
	l.mu.Unlock()
	notify(l.readable)
	notify(l.writable)
	if tell {
		_ = l.mux.send(frameReset, l.id, nil)
	}
}

// Finish ends both directions: in order what was written, and what was not read by a reset.
func (l *Lane) Finish() {
	_ = l.Close()
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if !over {
		l.Reset()
	}
}

// Lost is closed when the carrier is gone.
func (l *Lane) Lost() <-chan struct{} { return l.mux.done }

// SetDeadline implements net.Conn.
func (l *Lane) SetDeadline(t time.Time) error {
	l.readBy.set(t)
	l.writeBy.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (l *Lane) SetReadDeadline(t time.Time) error { l.readBy.set(t); return nil }

// SetWriteDeadline implements net.Conn.
func (l *Lane) SetWriteDeadline(t time.Time) error { l.writeBy.set(t); return nil }

// LocalAddr implements net.Conn.
func (l *Lane) LocalAddr() net.Addr { return l.mux.conn.LocalAddr() }

// RemoteAddr implements net.Conn.
func (l *Lane) RemoteAddr() net.Addr { return l.mux.conn.RemoteAddr() }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
