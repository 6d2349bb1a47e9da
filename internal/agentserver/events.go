package agentserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/relay"
	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	// heartbeat is between two heartbeats of a turn that is going on.
	heartbeat = 30 * time.Second
	// batch is how many frames are taken from the journal at once.
	batch = 64
)

// newest lets only the newest user of something live.
type newest struct {
	mu     sync.Mutex // guards cancel
	cancel context.CancelFunc
}

// take ends the user before and returns the context of the new one.
func (n *newest) take(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cancel != nil {
		n.cancel()
	}
	n.cancel = cancel
	return ctx, cancel
}

// serveEvents sends the host every frame that it does not have, as they come, and
// takes its acknowledgements.
func (s *Server) serveEvents(ctx context.Context, conn net.Conn) error {
	in := bufio.NewReader(conn)
	line, err := wire.ReadLine(in, wire.MaxHello)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	var req wire.Follow
	if err := json.Unmarshal(line, &req); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	s.following.Add(1)
	defer s.following.Add(-1)
	ctx, cancel := s.follower.take(ctx)
	stop := context.AfterFunc(ctx, func() { relay.HangUp(conn) }) // a newer stream, or the end of the link
	defer stop()
	s.journal.ack(req.From)
	var acks sync.WaitGroup
	acks.Go(func() {
		defer cancel()
		s.readAcks(in)
	})
	s.sendFrames(ctx, wire.NewFrameWriter(conn), req.From)
	cancel()
	relay.HangUp(conn)
	acks.Wait()
	return nil
}

func (s *Server) readAcks(in io.Reader) {
	var b [8]byte
	for {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return
		}
		s.journal.ack(binary.BigEndian.Uint64(b[:]))
	}
}

// sendFrames sends the frames after from until ctx or the stream ends.
func (s *Server) sendFrames(ctx context.Context, w *wire.FrameWriter, from uint64) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	frames := make([]wire.Frame, 0, batch)
	for {
		var added <-chan struct{}
		frames, added = s.journal.after(frames[:0], from, batch)
		for i := range frames {
			if w.Write(&frames[i]) != nil {
				return
			}
			from = frames[i].Seq
		}
		clear(frames) // the journal alone decides how long their bytes live
		select {
		case <-tick.C:
			if s.session.isActive() && w.Write(beat()) != nil {
				return
			}
		default:
		}
		if added == nil {
			continue
		}
		if w.Flush() != nil {
			return
		}
		if !s.awaitFrames(ctx, w, added, tick.C) {
			return
		}
	}
}

// awaitFrames waits for news in the journal and keeps the host company meanwhile.
func (s *Server) awaitFrames(ctx context.Context, w *wire.FrameWriter, added <-chan struct{}, tick <-chan time.Time) bool {
	for {
		select {
		case <-added:
			return true
		case <-ctx.Done():
			return false
		case <-tick:
			if !s.session.isActive() {
				continue
			}
			if w.Write(beat()) != nil || w.Flush() != nil {
				return false
			}
		}
	}
}

// beat is the heartbeat of an agent that is at work; one that is not sends none.
func beat() *wire.Frame {
	b, _ := json.Marshal(wire.Heartbeat{Active: true}) // a struct of one bool always marshals
	return &wire.Frame{Type: wire.FrameHeartbeat, At: time.Now(), Data: b}
}
