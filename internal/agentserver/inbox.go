package agentserver

import (
	"context"
	"errors"
	"strconv"

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
	unnamed int      // messages that came without an id
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
	return await(ctx, t)
}

// await waits for the end of a turn; that of a message which was delivered before is nil.
func await(ctx context.Context, t *turn) (wire.TurnResult, error) {
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
	if t.id == "" { // only the prompt of the session's start has none in the journal
		s.inbox.unnamed++
		t.id = "unnamed-" + strconv.Itoa(s.inbox.unnamed)
	}
	s.inbox.pending[t.id] = t
	s.queue = append(s.queue, t)
	wake(&s.changed)
	return t, nil
}

// steer hands words to the turn that is going on. A sender whose words were declined
// sends them again as a message. One message is handed over at a time, so that one that
// is sent twice at once is known the second time.
func (s *session) steer(ctx context.Context, m wire.UserMessage) (wire.TurnResult, error) {
	select {
	case s.steering <- struct{}{}:
		defer func() { <-s.steering }()
	case <-ctx.Done():
		return wire.TurnResult{}, ctx.Err()
	}
	s.mu.Lock()
	d, active, over := s.driver, s.active, s.closing
	queued, known := s.inbox.pending[m.MessageID], s.inbox.seen[m.MessageID]
	s.mu.Unlock()
	reason := "no turn is going on"
	switch {
	case queued != nil || known:
		return await(ctx, queued)
	case over:
		return wire.TurnResult{}, errOver
	case active:
		reason = s.handOver(ctx, d, m)
	}
	steered := reason == ""
	return wire.TurnResult{Steered: &steered, Reason: reason}, nil
}

// handOver returns why the driver does not take the words, or "".
func (s *session) handOver(ctx context.Context, d Driver, m wire.UserMessage) string {
	steerer, can := d.(Steerer)
	if !can {
		return "this agent cannot be steered"
	}
	if reason := steerer.Steer(ctx, m.Content); reason != "" {
		return reason
	}
	s.host.put(userMessage(m))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox.see(m.MessageID)
	return ""
}
