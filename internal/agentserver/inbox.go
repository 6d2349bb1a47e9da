package agentserver

import (
	"context"
	"errors"

	"github.com/Insights/insightscli/internal/link/wire"
)

// errOver is the answer to everything that comes after the end.
var errOver = errors.New("the session is over")

// remembered is how many delivered message ids are known again.
const remembered = 500

// inbox knows which messages were delivered, so that a sender who is not sure may
// send again.
type inbox struct {
	pending map[string]*turn
	seen    map[string]bool
	order   []string // of seen, oldest first
}

func newInbox() inbox {
	return inbox{pending: map[string]*turn{}, seen: map[string]bool{}}
}

// ended moves a message from the pending to the seen ones.
func (in *inbox) ended(t *turn) {
	if t.id == "" {
		return
	}
	delete(in.pending, t.id)
	in.see(t.id)
}

func (in *inbox) see(id string) {
	if id == "" || in.seen[id] {
		return
	}
	in.seen[id] = true
	in.order = append(in.order, id)
	if len(in.order) > remembered {
		delete(in.seen, in.order[0])
		in.order = in.order[1:]
	}
}

// message delivers one message and waits for the end of its turn. When ctx ends
// first the message stays delivered.
func (s *session) message(ctx context.Context, m wire.UserMessage) (wire.TurnResult, error) {
	if m.Steer {
		return s.steer(ctx, m)
	}
	t, err := s.enqueue(m)
	if err != nil {
		return wire.TurnResult{}, err
	}
	if t == nil {
		return wire.TurnResult{StopReason: wire.StopDuplicate, Duplicate: true}, nil
	}
	select {
	case <-t.done:
		return t.result, t.err
	case <-ctx.Done():
		return wire.TurnResult{}, ctx.Err()
	}
}

// enqueue returns the turn of the message, which is another's when the id is in
// flight, or nil when it was delivered before.
func (s *session) enqueue(m wire.UserMessage) (*turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.inbox.pending[m.MessageID]; t != nil {
		return t, nil
	}
	switch {
	case s.inbox.seen[m.MessageID]:
		return nil, nil
	case s.closing, s.over:
		return nil, errOver
	case s.oneShot:
		return nil, errors.New("a plain command takes no messages")
	case len(s.queue) >= maxQueued:
		return nil, errors.New("too many messages wait for their turn")
	}
	t := &turn{id: m.MessageID, text: m.Content, schema: m.Schema, done: make(chan struct{})}
	if t.id != "" {
		s.inbox.pending[t.id] = t
	}
	s.queue = append(s.queue, t)
	wake(&s.changed)
	return t, nil
}

// steer hands words to the turn that is going on. A sender whose words were declined
// sends them again as a message.
func (s *session) steer(ctx context.Context, m wire.UserMessage) (wire.TurnResult, error) {
	s.mu.Lock()
	d, active, over := s.driver, s.active, s.closing
	duplicate := s.inbox.seen[m.MessageID]
	s.mu.Unlock()
	no := func(reason string) (wire.TurnResult, error) {
		steered := false
		return wire.TurnResult{Steered: &steered, Reason: reason}, nil
	}
	steerer, can := d.(Steerer)
	switch {
	case over:
		return wire.TurnResult{}, errOver
	case duplicate:
		return wire.TurnResult{StopReason: wire.StopDuplicate, Duplicate: true}, nil
	case !active:
		return no("no turn is going on")
	case !can:
		return no("this agent cannot be steered")
	}
	if reason := steerer.Steer(ctx, m.Content); reason != "" {
		return no(reason)
	}
	s.mu.Lock()
	s.inbox.see(m.MessageID)
	s.mu.Unlock()
	steered := true
	return wire.TurnResult{Steered: &steered}, nil
}
