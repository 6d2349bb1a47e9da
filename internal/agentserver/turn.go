package agentserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// turn is one prompt on its way.
type turn struct {
	id     string // of the message, may be empty
	text   string
	schema json.RawMessage
	done   chan struct{}
	result wire.TurnResult // set before done is closed
	err    error

	timedOut bool
}

// prompt does one turn, within its time.
func (s *session) prompt(ctx context.Context, d Driver, t *turn, bound time.Duration) Turn {
	if t.id != "" {
		s.host.put(userMessage(wire.UserMessage{Content: t.text, MessageID: t.id, Schema: t.schema}))
	}
	late := s.limit(ctx, bound)
	result, err := d.Prompt(ctx, t.text, t.schema)
	if err != nil {
		result = Turn{Outcome: wire.Outcome{StopReason: StopError, Error: err.Error()}, Last: true}
	}
	switch reason := result.Outcome.StopReason; {
	case !late(), reason != StopCancelled && reason != StopError:
	default:
		t.timedOut = true
		result.Outcome = wire.Outcome{StopReason: StopError, Error: fmt.Sprintf("the turn took longer than %s", bound)}
	}
	return result
}

// limit cancels the turn that begins when it has had its time, and closes an agent that
// does not obey. The returned function ends the watch, and reports whether it was late.
func (s *session) limit(ctx context.Context, bound time.Duration) (late func() bool) {
	if bound <= 0 {
		return func() bool { return false }
	}
	turn, stop := context.WithCancel(ctx)
	over := make(chan bool, 1)
	s.running.Go(func() {
		if !wait(turn, bound) {
			over <- false
			return
		}
		over <- true
		s.cancel(ctx)
		if wait(turn, closeTime) {
			s.log.Warn("the agent does not end its turn")
			s.closeDriver(ctx)
		}
	})
	return func() bool {
		stop()
		return <-over
	}
}

// userMessage is the event of a message. Of one that is too long for an event the
// beginning is told, without its schema.
func userMessage(m wire.UserMessage) wire.Frame {
	f := wire.Frame{Type: wire.FrameEvent, Method: wire.EventUserMessage}
	f.Data, _ = json.Marshal(m)
	if f.Data == nil || wire.FrameSize(&f) > wire.MaxFrame {
		m.Schema, m.Content = nil, shortened(m.Content)
		f.Data, _ = json.Marshal(m) // of strings
	}
	return f
}

// endTurn answers whoever waits for the turn. That of a plain command is told by
// FrameDone alone.
func (s *session) endTurn(t *turn, r Turn) {
	o := r.Outcome
	s.host.flush()
	if !s.oneShot {
		s.turnComplete(t, r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
	t.result = wire.TurnResult{StopReason: o.StopReason}
	if o.Error != "" {
		t.err = &turnError{o.Error}
	}
	s.inbox.ended(t)
	close(t.done)
}

// turnError is why a turn failed that was delivered and has ended.
type turnError struct{ reason string }

// Error implements error.
func (e *turnError) Error() string { return e.reason }

// turnComplete writes how a turn of an agent ended. A reply that is too long for a frame
// is left out; the agent's words are there.
func (s *session) turnComplete(t *turn, r Turn) {
	c := wire.TurnComplete{
		MessageID: t.id, StopReason: r.Outcome.StopReason, Error: brief(r.Outcome.Error),
		Structured: r.Structured, Rejected: r.Rejected, TimedOut: t.timedOut,
	}
	f := wire.Frame{Type: wire.FrameEvent, Method: wire.EventTurnComplete}
	f.Data, _ = json.Marshal(c)
	if f.Data == nil || wire.FrameSize(&f) > wire.MaxFrame {
		c.Structured = nil
		f.Data, _ = json.Marshal(c) // of strings and numbers
	}
	s.host.put(f)
}
