package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Follow delivers the frames with a number above from, in order and without gaps,
// and heartbeats between them. It returns nil after the last frame
// (wire.FrameDone) was delivered, deliver's own error, the cause of ctx, or an
// error that wraps ErrLost when the link broke or wire.ErrFrame when PID 1 breaks
// the protocol. Frame.Data is valid during the call of deliver only. A second
// Follow replaces the first.
func (c *Client) Follow(ctx context.Context, from uint64, deliver func(wire.Frame) error) error {
	conn, err := c.open(ctx, "agent.Follow", wire.ServiceEvents)
	if err != nil {
		return err
	}
	if err := wire.NewStreamWriter(conn).Line(wire.Follow{From: from}); err != nil {
		_ = conn.Close()
		return lost("agent.Follow", err)
	}
	// The stream stays open after Follow: the last frame's acknowledgement is yet
	// to come. The next Follow, or Close, ends it.
	c.acks.use(conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = deliverFrames(conn, from, deliver)
	var theirs *protocolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &theirs) && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &theirs) && errors.Is(err, wire.ErrFrame):
		return errs.New("agent.Follow", errs.Internal, "", "%w", theirs.err)
	case errors.As(err, &theirs):
		return lost("agent.Follow", theirs.err)
	}
	return err
}

// protocolError tells an error of the stream from one of deliver.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

func deliverFrames(conn net.Conn, from uint64, deliver func(wire.Frame) error) error {
	frames := wire.NewFrameReader(conn)
	last := from
	first := true
	for {
		var f wire.Frame
		if err := frames.Next(&f); err != nil {
			return &protocolError{err}
		}
		if f.Type != wire.FrameHeartbeat {
			// The first one may be further on than from+1 where an earlier host has
			// acknowledged more than this one remembers.
			if f.Seq <= last || !first && f.Seq != last+1 {
				return &protocolError{fmt.Errorf("%w: number %d after %d", wire.ErrFrame, f.Seq, last)}
			}
			last, first = f.Seq, false
		}
		if err := deliver(f); err != nil {
			return err
		}
		if f.Type == wire.FrameDone {
			return nil
		}
	}
}

// Ack tells PID 1 that every frame up to seq is durable and may be forgotten. It
// never blocks; acknowledgements that follow each other closely become one.
func (c *Client) Ack(seq uint64) { c.acks.want(seq) }

// acks sends acknowledgements on the current events stream.
type acks struct {
	durable atomic.Uint64
	wake    chan struct{} // capacity 1

	mu   sync.Mutex // guards conn
	conn net.Conn
}

func newAcks() *acks { return &acks{wake: make(chan struct{}, 1)} }

func (a *acks) want(seq uint64) {
	for {
		old := a.durable.Load()
		if seq <= old {
			return
		}
		if a.durable.CompareAndSwap(old, seq) {
			a.poke()
			return
		}
	}
}

func (a *acks) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// use makes conn the stream to send on, and ends the one before.
func (a *acks) use(conn net.Conn) {
	a.mu.Lock()
	old := a.conn
	a.conn = conn
	a.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	a.poke()
}

// run sends until done is closed. A stream that fails is noticed by its reader.
func (a *acks) run(done <-chan struct{}) {
	var sentTo net.Conn
	var sent uint64
	for {
		select {
		case <-a.wake:
		case <-done:
			return
		}
		a.mu.Lock()
		conn := a.conn
		a.mu.Unlock()
		seq := a.durable.Load()
		if conn == nil || seq == 0 || conn == sentTo && seq == sent {
			continue
		}
		sentTo, sent = conn, seq
		_, _ = conn.Write(binary.BigEndian.AppendUint64(nil, seq))
	}
}
