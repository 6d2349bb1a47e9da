package reply

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// maxText bounds the message that is kept of a turn, in bytes. It is more than any model
// says; what is longer is cut, and then does not fit a schema.
const maxText = 4 << 20

// Turns follows the turns of an agent in the events of one run, live or recorded. It is
// not safe for concurrent use.
type Turns struct {
	schema  func(messageID string) *Schema
	prompts []*prompt
	retries map[string]*prompt // by the id of the retry that was decided on

	current   *prompt // whose turn is going on; nil between turns
	attempt   string  // message id of that turn
	activity  Activity
	text      strings.Builder
	newStarts bool // the next words begin a new message
}

// prompt is one prompt with all its attempts.
type prompt struct {
	number  int
	id      string
	seen    bool   // there was an attempt: what follows is of the newest
	attempt string // its message id
	last    Attempt
	past    Past   // before it
	next    Past   // with it
	ended   *Ended // while nothing was done about it
	judged  bool
}

// Ended says that a turn of the agent has ended, and what is to be done about it: Turn is
// recorded, or Retry sent as a message with the id RetryID and the schema Schema.
type Ended struct {
	Number    int    // of the prompt, from 1
	MessageID string // of the prompt; empty for the run's own
	Attempt   int    // from 1
	Decision
	RetryID string
	Schema  json.RawMessage // of the prompt, nil where there is none
}

// NewTurns returns a Turns that has seen nothing. schema finds the schema that the reply
// to a message must fit, nil where there is none; the run's own prompt has the empty id.
func NewTurns(schema func(messageID string) *Schema) *Turns {
	return &Turns{schema: schema, retries: map[string]*prompt{}, newStarts: true}
}

// RetryID is the message id of the n-th time, from 1, that a prompt is asked again.
func RetryID(messageID string, n int) string {
	if messageID == "" {
		messageID = "start"
	}
	return fmt.Sprintf("%s%s%d", messageID, retryMark, n)
}

// retryMark stands in the ids of messages that ask again, and in no others.
const retryMark = "~retry"

// IsRetry reports whether a message with this id asks again.
func IsRetry(messageID string) bool { return strings.Contains(messageID, retryMark) }

// Event takes the next event of the run. It returns what is to be done when with it a
// turn has ended, else nil. When events are replayed, ignore what it returns and ask
// [Turns.Pending] at the end.
func (t *Turns) Event(ev task.Event) *Ended {
	switch method := strings.Replace(ev.Method, "__insights/", "_insights/", 1); {
	case method == wire.EventUserMessage:
		var m wire.UserMessage
		if json.Unmarshal(ev.Params, &m) == nil {
			t.begin(ev, m.MessageID)
		}
	case method == wire.EventTurnComplete:
		var c wire.TurnComplete
		if json.Unmarshal(ev.Params, &c) == nil {
			return t.complete(ev, c)
		}
	case ev.Kind == task.KindTurn:
		var turn task.Turn
		if json.Unmarshal(ev.Params, &turn) == nil {
			t.judged(turn)
		}
	case ev.Kind == task.KindAgent:
		t.update(ev)
	case ev.Kind == task.KindPermission, ev.Kind == task.KindUsage:
		t.sign(ev, false)
	case ev.Kind == task.KindStep:
		var s task.Step
		if json.Unmarshal(ev.Params, &s) == nil {
			t.step(ev, s)
		}
	}
	return nil
}

// Pending returns, in order, what has ended and was neither recorded nor asked again.
func (t *Turns) Pending() []*Ended {
	var list []*Ended
	for _, p := range t.prompts {
		if p.ended != nil && !p.judged {
			list = append(list, p.ended)
		}
	}
	return list
}

// Current is the prompt whose turn is going on; number is 0 between turns, and before the
// first sign of the run's own.
func (t *Turns) Current() (number int, messageID string) {
	if t.current == nil {
		return 0, ""
	}
	return t.current.number, t.current.id
}

// prompt finds the prompt that a message belongs to, its own or the one it asks again.
func (t *Turns) prompt(messageID string) *prompt {
	if p := t.retries[messageID]; p != nil {
		return p
	}
	for _, p := range t.prompts {
		if p.id == messageID {
			return p
		}
	}
	p := &prompt{number: len(t.prompts) + 1, id: messageID}
	t.prompts = append(t.prompts, p)
	return p
}

// begin notes that the turn of a message begins.
func (t *Turns) begin(ev task.Event, messageID string) {
	t.reset()
	t.current, t.attempt = t.prompt(messageID), messageID
	t.activity.Began = ev.At
	if t.retries[messageID] != nil {
		t.current.ended = nil // asked again
	}
}

func (t *Turns) reset() {
	t.current, t.attempt, t.activity, t.newStarts = nil, "", Activity{}, true
	t.text = strings.Builder{}
}

// sign notes a sign of life. The first one without a message before it is of the run's
// own prompt, which has none.
func (t *Turns) sign(ev task.Event, unpriced bool) {
	if t.current == nil && len(t.prompts) == 0 {
		t.current = t.prompt("")
	}
	if t.activity.Began.IsZero() {
		t.activity.Began = ev.At
	}
	t.activity.sign(ev.At, unpriced)
}

// step takes a step of the run: a failed one is a sign of life, and the turn of the run's
// own prompt begins when the host begins to follow the agent.
func (t *Turns) step(ev task.Event, s task.Step) {
	switch {
	case s.Status == task.StepFailed:
		t.sign(ev, false)
	case s.Step == "follow" && len(t.prompts) == 0 && t.activity.Began.IsZero():
		t.activity.Began = ev.At
	}
}

// complete judges the turn that has ended.
func (t *Turns) complete(ev task.Event, c wire.TurnComplete) *Ended {
	p := t.prompt(c.MessageID)
	a := Attempt{
		StopReason: c.StopReason, Text: t.text.String(), Structured: c.Structured, Rejected: max(0, c.Rejected),
		Err: c.Error, TimedOut: c.TimedOut, Ended: ev.At, Activity: t.activity,
	}
	if a.Activity.Began.IsZero() {
		a.Activity.Began = ev.At
	}
	t.reset()
	if p.judged {
		return nil
	}
	if p.seen && p.attempt == c.MessageID {
		a = outrank(p.last, a)
	} else {
		p.past = p.next
	}
	return t.judge(p, a, c.MessageID)
}

// outrank joins two ends of the same turn: one that was reached in order goes before a
// refusal or an error on the way.
func outrank(first, second Attempt) Attempt {
	if first.StopReason == stopEndTurn && second.StopReason != stopEndTurn {
		return first
	}
	if strings.TrimSpace(second.Text) == "" && first.StopReason == second.StopReason {
		second.Text = first.Text
	}
	return second
}

func (t *Turns) judge(p *prompt, a Attempt, attempt string) *Ended {
	var s *Schema
	if t.schema != nil {
		s = t.schema(p.id)
	}
	d := Judge(p.past, a, s)
	p.seen, p.attempt, p.last, p.next = true, attempt, a, d.Past
	p.ended = &Ended{Number: p.number, MessageID: p.id, Attempt: p.past.retries() + 1, Decision: d}
	if s != nil {
		p.ended.Schema = s.Raw()
	}
	if turn := p.ended.Turn; turn != nil {
		turn.Number, turn.MessageID = p.number, p.id
		return p.ended
	}
	p.ended.RetryID = RetryID(p.id, p.ended.Past.retries())
	t.retries[p.ended.RetryID] = p
	return p.ended
}

// judged notes that the outcome of a prompt is recorded.
func (t *Turns) judged(turn task.Turn) {
	p := t.prompt(turn.MessageID)
	p.judged, p.ended = true, nil
}
