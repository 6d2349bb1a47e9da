// Package lanes carries many connections over one stream. It is what a link uses for the
// connections of a sandbox, of which there may be thousands: the multiplexer of the link
// holds up to twice its window of 256 KiB for each stream, whoever reads it, and has no way
// to reset one. A lane begins with a window of 64 KiB, which grows while its reader is faster
// than it, within a budget that all lanes share; its memory is given back when it is read.
//
// One goroutine reads the carrier and never waits for a lane: what a lane may be sent is what
// it has room for. A peer that sends more than it may, or what is no frame, ends the carrier
// and all its lanes.
package lanes

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

// The frames: a type, the length of what follows in three bytes, and the lane's number.
const (
	frameOpen   = 0 // no more
	frameData   = 1
	frameLast   = 2 // data, behind which nothing more may be sent until there is credit
	frameCredit = 3 // four bytes: how much more the lane may be sent
	frameEnd    = 4 // no more data comes
	frameReset  = 5 // nothing comes, and nothing is taken

	headerLen = 8
	maxData   = 64 << 10
)

// Windows of a lane.
const (
	firstWindow = 64 << 10
	maxWindow   = 1 << 20
	maxBudget   = 32 << 20 // of what all windows of a side are larger than the first
	blockSize   = 16 << 10
)

const (
	maxWaiting = 256     // lanes that nobody has accepted
	maxPending = 1 << 10 // resets that are still to be sent
)

// Sentinels of lanes.
var (
	// ErrReset is the error of a lane that the other side has reset, or this one.
	ErrReset = errors.New("the connection was reset")
	// ErrClosed is the error of lanes whose carrier is gone.
	ErrClosed = errors.New("the carrier is closed")
	// errProtocol ends a carrier.
	errProtocol = errors.New("the peer broke the rules of lanes")
)

// Mux is one side of a carrier. One side opens lanes and the other accepts them. All methods
// may be called at the same time.
type Mux struct {
	conn    net.Conn
	opens   bool
	blocks  sync.Pool
	waiting chan *Lane
	done    chan struct{}
	reader  sync.WaitGroup
	once    sync.Once

	writing sync.Mutex // guards out, and the order of frames; taken before mu, never after
	out     []byte

	mu      sync.Mutex // guards what follows
	lanes   map[uint32]*Lane
	next    uint32
	budget  int      // that is left
	pending []uint32 // lanes to reset
	wake    chan struct{}
}

// New makes a side of a carrier, which it owns from now on. Exactly one side opens.
func New(conn net.Conn, opens bool) *Mux {
	m := &Mux{
		conn: conn, opens: opens, lanes: map[uint32]*Lane{}, budget: maxBudget,
		blocks:  sync.Pool{New: func() any { return new(block) }},
		waiting: make(chan *Lane, maxWaiting), done: make(chan struct{}), wake: make(chan struct{}, 1),
		out: make([]byte, 0, headerLen+maxData),
	}
	m.reader.Go(func() {
		m.read()
		m.end()
	})
	m.reader.Go(m.sendPending)
	return m
}

// Done is closed when the carrier is gone.
func (m *Mux) Done() <-chan struct{} { return m.done }

// Close ends the carrier and all lanes.
func (m *Mux) Close() error {
	m.end()
	m.reader.Wait()
	return nil
}

func (m *Mux) end() {
	m.once.Do(func() {
		close(m.done)
		_ = m.conn.SetDeadline(past())
		_ = m.conn.Close()
	})
}

// Open opens a lane.
func (m *Mux) Open() (*Lane, error) {
	m.mu.Lock()
	m.next++
	l := m.newLane(m.next)
	m.mu.Unlock()
	if err := m.send(frameOpen, l.id, nil); err != nil {
		return nil, err
	}
	return l, nil
}

// Accept returns the next lane that the other side has opened.
func (m *Mux) Accept() (*Lane, error) {
	select {
	case l := <-m.waiting:
		return l, nil
	case <-m.done:
		return nil, ErrClosed
	}
}

// newLane is called with mu held.
func (m *Mux) newLane(id uint32) *Lane {
	l := &Lane{
		mux: m, id: id, credit: firstWindow, window: firstWindow, granted: firstWindow,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
	}
	m.lanes[id] = l
	return l
}

func (m *Mux) lane(id uint32) *Lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lanes[id]
}

// forget drops a lane that is over, and takes back what its window has grown by.
func (m *Mux) forget(l *Lane, grown int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lanes[l.id] == l {
		delete(m.lanes, l.id)
		m.budget += grown
	}
}

// grow takes more from the budget, if it is there.
func (m *Mux) grow(by int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget < by {
		return false
	}
	m.budget -= by
	return true
}

// send writes one frame.
func (m *Mux) send(kind byte, id uint32, data []byte) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	var h [headerLen]byte
	binary.BigEndian.PutUint32(h[:], uint32(len(data)))
	h[0] = kind
	binary.BigEndian.PutUint32(h[4:], id)
	m.out = append(append(m.out[:0], h[:]...), data...)
	if _, err := m.conn.Write(m.out); err != nil {
		m.end()
		return ErrClosed
	}
	return nil
}

// read takes frames until the carrier is gone.
func (m *Mux) read() {
	in := bufio.NewReaderSize(m.conn, 32<<10)
	data := make([]byte, maxData)
	var h [headerLen]byte
	for {
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return
		}
		kind, id := h[0], binary.BigEndian.Uint32(h[4:])
		h[0] = 0
		size := int(binary.BigEndian.Uint32(h[:]))
		if size > maxData {
			return
		}
		if _, err := io.ReadFull(in, data[:size]); err != nil {
			return
		}
		if m.frame(kind, id, data[:size]) != nil {
			return
		}
	}
}

// frame acts on a frame. Those of lanes that were forgotten here are dropped: the other side
// has been told, or will be.
func (m *Mux) frame(kind byte, id uint32, data []byte) error {
	l := m.lane(id)
	switch {
	case kind == frameOpen && l == nil && !m.opens && len(data) == 0:
		return m.opened(id)
	case kind == frameOpen || kind > frameReset, kind == frameCredit && len(data) != 4, kind > frameCredit && len(data) != 0:
		return errProtocol
	case l == nil:
	case kind == frameData || kind == frameLast:
		return l.receive(data, kind == frameLast)
	case kind == frameCredit:
		return l.receiveCredit(binary.BigEndian.Uint32(data))
	default:
		l.receiveEnd(kind == frameReset)
	}
	return nil
}

// opened takes a lane that the other side has opened, if there is room.
func (m *Mux) opened(id uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.newLane(id)
	select {
	case m.waiting <- l:
		return nil
	default:
	}
	delete(m.lanes, id)
	if m.pending = append(m.pending, id); len(m.pending) > maxPending {
		return errProtocol // it opens faster than it can be told that there is no room
	}
	notify(m.wake)
	return nil
}

// sendPending resets the lanes that there was no room for. The reader must not: it would
// wait for the other side's.
func (m *Mux) sendPending() {
	for {
		select {
		case <-m.wake:
		case <-m.done:
			return
		}
		m.mu.Lock()
		ids := m.pending
		m.pending = nil
		m.mu.Unlock()
		for _, id := range ids {
			if m.send(frameReset, id, nil) != nil {
				return
			}
		}
	}
}
