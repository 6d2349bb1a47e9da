package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/link"
)

const (
	// firstTime bounds how long what is judged may take to come once it has begun; an open
	// connection that says nothing is no harm.
	firstTime = 30 * time.Second
	// A client that was cut off still sends for a while; what it sends is thrown away so that
	// it sees the end, up to these bounds.
	lingerTime  = 2 * time.Second
	lingerBytes = 16 << 20
	lookAhead   = 4 << 10 // of the client's buffer
)

// passage is one connection that was let through.
type passage struct {
	place  place
	rule   string
	client *inlet
	target net.Conn

	up, down atomic.Int64 // bytes that were carried
	asks     atomic.Bool  // the client speaks HTTP; set before its first byte is sent on
	status   chan int     // of the first response, 0 where there is none; one value

	mu   sync.Mutex    // guards over and, with it, the deadlines of the client
	over chan struct{} // closed by cut
}

func newPassage(p place, allowed string, client *inlet, target net.Conn) *passage {
	return &passage{
		place: p, rule: allowed, client: client, target: target,
		status: make(chan int, 1), over: make(chan struct{}),
	}
}

// inlet is the client's side, of which the beginning can be looked at.
type inlet struct {
	net.Conn
	in *bufio.Reader
}

func newInlet(conn net.Conn) *inlet {
	return &inlet{Conn: conn, in: bufio.NewReaderSize(conn, lookAhead)}
}

// Read implements net.Conn.
func (c *inlet) Read(b []byte) (int, error) { return c.in.Read(b) }

// refusal is a denial of what a client says on a connection.
type refusal struct {
	denial
	answer []byte // what the client is told in the words of its protocol; empty: nothing
}

// carry carries a connection until both directions have ended, or one has failed or is
// refused, and closes the target.
func (g *Gate) carry(ctx context.Context, p *passage) {
	stop := context.AfterFunc(ctx, p.cut)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := g.downward(p)
		p.tell(0)
		if err != nil {
			p.cut()
			return
		}
		_ = closeWrite(p.client.Conn)
	})
	err := g.upward(p)
	if err == nil {
		err = closeWrite(p.target)
	}
	if err != nil {
		p.cut()
	}
	wg.Wait()
	_ = p.target.Close()
	var refused *refusal
	if errors.As(err, &refused) {
		g.refused(p.place, &refused.denial, p)
		p.end(refused.answer)
		return
	}
	if p.isOver() {
		p.end(nil)
	}
	g.record(p.record())
}

// cut ends both directions at once.
func (p *passage) cut() {
	reset(p.target)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.client.SetDeadline(time.Unix(1, 0))
	if !p.isOver() {
		close(p.over)
	}
}

func (p *passage) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// within bounds the client's next bytes; 0 takes the bound away.
func (p *passage) within(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.isOver():
	case d == 0:
		_ = p.client.SetReadDeadline(time.Time{})
	default:
		_ = p.client.SetReadDeadline(time.Now().Add(d))
	}
}

// tell gives the status of the first response to who waits for it.
func (p *passage) tell(status int) {
	select {
	case p.status <- status:
	default:
	}
}

// reset closes a connection so that the peer does not take it for its end, if it can.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
		_ = t.Close()
		return
	}
	link.Reset(c)
}

// end resets the client of a connection that was cut. Where it can be told why it is, and
// what it still sends is discarded until it has read that.
func (p *passage) end(word []byte) {
	if p.down.Load() > 0 || len(word) == 0 {
		reset(p.client.Conn)
		return
	}
	_ = p.client.SetDeadline(time.Now().Add(lingerTime))
	_, _ = p.client.Write(word)
	_ = closeWrite(p.client.Conn)
	_, _ = io.CopyN(io.Discard, p.client.Conn, lingerBytes)
}

func (p *passage) record() Record {
	r := Record{
		Name: p.place.name, Port: p.place.port, Verdict: "allow", Rule: p.rule,
		Sent: p.up.Load(), Received: p.down.Load(),
	}
	if p.place.addr.IsValid() {
		r.Addr = p.place.addr.String()
	}
	return r
}

// downward carries what the target sends. Where the client speaks HTTP the status of its
// first response is looked at: it tells whether the protocol changes.
func (g *Gate) downward(p *passage) error {
	first := make([]byte, 2<<10)
	n, err := p.target.Read(first)
	first = first[:n]
	if n > 0 && p.asks.Load() {
		if err := p.firstResponse(first); err != nil {
			return err
		}
	} else if err := p.deliver(first); err != nil {
		return err
	}
	p.tell(0)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return g.buffers.copy(p.client.Conn, p.target, &p.down)
}

func (p *passage) deliver(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := p.client.Write(b)
	p.down.Add(int64(n))
	return err
}

// firstResponse delivers what begins with got up to the end of the first head that is not
// an interim one, and tells its status.
func (p *passage) firstResponse(got []byte) error {
	for {
		end := bytes.Index(got, []byte("\r\n\r\n"))
		switch {
		case end >= 0:
			status := statusOf(got)
			if err := p.deliver(got[:end+4]); err != nil {
				return err
			}
			got = got[end+4:]
			if status/100 != 1 || status == 101 {
				p.tell(status)
				return p.deliver(got)
			}
			continue
		case len(got) > maxHead:
			return p.deliver(got)
		}
		more := make([]byte, 2<<10)
		n, err := p.target.Read(more)
		got = append(got, more[:n]...)
		if err != nil {
			return p.deliver(got) // the next read says it again
		}
	}
}

// statusOf reads the status of a response; 0 is none.
func statusOf(b []byte) int {
	if len(b) < len("HTTP/1.1 101 ") || !bytes.HasPrefix(b, []byte("HTTP/1.")) || b[8] != ' ' || b[12] != ' ' && b[12] != '\r' {
		return 0
	}
	n, err := strconv.Atoi(string(b[9:12]))
	if err != nil {
		return 0
	}
	return n
}
