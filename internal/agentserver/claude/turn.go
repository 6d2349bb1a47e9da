package claude

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// turn is one prompt and what came of it. The driver's mutex guards it.
type turn struct {
	id        string
	proc      *process        // that has the prompt
	waiting   map[string]bool // messages that the program has not begun with
	tracked   bool            // the program tells what becomes of each message
	begun     bool            // with one of the messages
	cancelled bool
	exhausted bool // the model's words went on beyond their limit
	rejected  int
	accepted  json.RawMessage // the structured reply as the model wrote it
	over      bool
	result    agentserver.Turn // set before done is closed
	done      chan struct{}
}

func newTurn() *turn {
	return &turn{
		id: newID(), waiting: map[string]bool{}, done: make(chan struct{}),
	}
}

// wait reports whether the turn ended within the time.
func (t *turn) wait(ctx context.Context, bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-t.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func failed(words string) agentserver.Turn {
	return agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopError, Error: oneLine(words)}}
}

// lifecycle takes what the program says about one message of ours.
func (d *driver) lifecycle(m *message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.turn
	if t == nil || !t.waiting[m.Command] {
		return
	}
	t.tracked, t.proc.tracked = true, true
	switch m.State {
	case "queued":
		return
	case "started":
		t.begun = true
	}
	delete(t.waiting, m.Command)
	if !t.begun && len(t.waiting) == 0 && t.cancelled {
		d.finishLocked(t, agentserver.Turn{}) // nothing of it has begun: there will be no result
	}
}

// ended takes a result: the end of the turn, unless a message of ours is still to come.
// refused is called before a turn ends in which the model refused.
func (d *driver) ended(p *process, m *message, refused func()) {
	d.mu.Lock()
	t := d.turn
	switch {
	case t == nil || t.proc != p:
		d.mu.Unlock()
		return // of a turn of the program's own accord
	case d.kept && !t.begun && m.IsError && strings.Contains(m.failure(), noConversation):
		// The program ends now, and another one takes the prompt.
		d.gone = true
		d.mu.Unlock()
		return
	case t.tracked && len(t.waiting) > 0 && !t.cancelled:
		d.mu.Unlock()
		return
	case t.tracked && len(t.waiting) > 0:
		d.stale = true // it would go on with what we no longer want
	}
	result := t.of(m)
	d.mu.Unlock()
	if result.Outcome.StopReason == agentserver.StopRefusal {
		refused()
	}
	d.finish(t, result)
}

// of tells how the turn ended.
func (t *turn) of(m *message) agentserver.Turn {
	switch {
	case m.StopReason == "refusal":
		return agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopRefusal}}
	case t.exhausted, m.StopReason == "max_tokens" && !m.IsError:
		return agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopMaxTokens}}
	case m.Terminal == "structured_output_retry_exhausted":
		// The host judges a turn without a fitting reply, and may ask again.
	case m.IsError:
		return failed(m.failure())
	case strings.HasPrefix(m.Terminal, "aborted"), m.Terminal == "api_error":
		return failed("the turn ended early: " + m.Terminal)
	}
	turn := agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopEndTurn}}
	if len(m.Structured) > 0 && string(m.Structured) != "null" {
		turn.Structured = exact(t.accepted, m.Structured)
	}
	return turn
}

// exact is the reply as the model wrote it, where that is the same value: the program
// rounds numbers.
func exact(written, reply json.RawMessage) json.RawMessage {
	var a, b any
	if json.Unmarshal(written, &a) == nil && json.Unmarshal(reply, &b) == nil && reflect.DeepEqual(a, b) {
		return written
	}
	return reply
}

// Steer implements agentserver.Steerer. The program takes the words into the turn at its
// next step, or does one more for them: the turn lasts until then.
func (d *driver) Steer(_ context.Context, text string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.turn
	switch {
	case t == nil || t.proc == nil || t.cancelled:
		return "no turn is going on"
	case !t.tracked:
		return "this version of Claude Code does not tell what becomes of a message"
	}
	id := newID()
	t.waiting[id] = true
	t.proc.say(userLine(text, id))
	return ""
}
