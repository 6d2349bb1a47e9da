package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/Insights/insightscli/internal/link/lanes"
	"github.com/Insights/insightscli/internal/link/wire"
)

// serviceLanes is the stream that carries lanes. Each side carries those that the other has
// opened, over one such stream, and serves them like streams.
const serviceLanes = "lanes"

// open makes a connection for a service: a lane where there may be thousands of them.
func (s *Session) open(ctx context.Context, service string) (net.Conn, error) {
	if name, _, _ := strings.Cut(service, " "); name != wire.ServiceEgress {
		conn, err := s.mux.Open()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrClosed, err)
		}
		return conn, nil
	}
	carrier, err := s.carries(ctx)
	if err != nil {
		return nil, err
	}
	lane, err := carrier.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return lane, nil
}

// carries returns the carrier of this side's lanes. The first caller makes it, while the
// others wait.
func (s *Session) carries(ctx context.Context) (*lanes.Mux, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.carrier != nil {
		select {
		case <-s.carrier.Done():
			_ = s.carrier.Close()
			s.carrier = nil
		default:
			return s.carrier, nil
		}
	}
	conn, err := s.mux.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if err := s.ask(ctx, conn, serviceLanes); err != nil {
		Reset(conn)
		return nil, err
	}
	s.carrier = lanes.New(conn, true)
	return s.carrier, nil
}

// carry serves the lanes that the other side opens.
func (v *serving) carry(ctx context.Context, st *stream) error {
	if _, nested := st.Conn.(*lanes.Lane); nested || !v.carries.CompareAndSwap(false, true) {
		return errors.New("there are lanes already")
	}
	defer v.carries.Store(false)
	if err := st.accept(); err != nil {
		return err
	}
	carrier := lanes.New(st.Conn, false)
	stop := context.AfterFunc(ctx, func() { _ = carrier.Close() })
	defer stop()
	for {
		lane, err := carrier.Accept()
		if err != nil {
			return carrier.Close()
		}
		v.take(ctx, lane)
	}
}

// finish closes a stream that its handler is done with.
func finish(conn net.Conn) {
	if l, ok := conn.(*lanes.Lane); ok {
		l.Finish()
		return
	}
	_ = conn.Close()
}

// Reset gives a connection of a link up, so that neither side waits for it any more. A lane's
// other side meets an error; the multiplexer of streams has no such thing, and theirs the
// end. conn is what a [Handler] was given or [Session.Open] has returned.
func Reset(conn net.Conn) {
	if st, ok := conn.(*stream); ok {
		conn = st.Conn
	}
	if l, ok := conn.(*lanes.Lane); ok {
		l.Reset()
		return
	}
	_ = conn.SetDeadline(time.Unix(1, 0))
	_ = conn.Close()
}

// Lost returns a channel that is closed when the link under a stream is gone: a stream
// that such an end has cut looks to its reader like one that was closed in order. conn is
// one that [Session.Open] returned; the channel of any other is nil.
func Lost(conn net.Conn) <-chan struct{} {
	switch c := conn.(type) {
	case *yamux.Stream:
		return c.Session().CloseChan()
	case *lanes.Lane:
		return c.Lost()
	}
	return nil
}
