package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// turn is one turn of the thread. What its items have said is touched by the goroutine
// of the conn only, until the turn is done.
type turn struct {
	schema json.RawMessage

	started   chan struct{} // closed when the turn has an id
	done      chan struct{} // closed when Codex says that it is over
	over      chan struct{} // closed when Prompt is about to return
	cancelled chan struct{}

	mu     sync.Mutex // guards the rest
	number string     // Codex's id
	result turnResult
	denial string // why the gateway lets us in no more

	said speech
	last string // the last whole message
}

// turnResult is how Codex says that a turn ended.
type turnResult struct {
	ID     string     `json:"id"`
	Status string     `json:"status"` // completed, interrupted, failed, inProgress
	Error  *turnError `json:"error"`
}

type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"` // a word, or an object of one key
	Details string          `json:"additionalDetails"`
}

func newTurn(schema json.RawMessage) *turn {
	return &turn{
		schema:  schema,
		started: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{}), cancelled: make(chan struct{}),
	}
}

// id is empty until the turn has begun.
func (t *turn) id() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.number
}

// begun notes the id, which is told twice: in an answer and in a notification.
func (t *turn) begun(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.number != "" || id == "" {
		return
	}
	t.number = id
	close(t.started)
}

// ended notes how a turn ended. Those of others are none of ours.
func (t *turn) ended(r turnResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.number == "" || t.number != r.ID {
		return
	}
	select {
	case <-t.done:
	default:
		t.result = r
		close(t.done)
	}
}

func (t *turn) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isCancelled() {
		close(t.cancelled)
	}
}

func (t *turn) isCancelled() bool {
	select {
	case <-t.cancelled:
		return true
	default:
		return false
	}
}

// whileNotCancelled is a context that a cancellation ends.
func (t *turn) whileNotCancelled(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-t.cancelled:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-gone }
}

// deny notes why the gateway lets us in no more. It reports whether that is news.
func (t *turn) deny(why string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.denial != "" {
		return false
	}
	t.denial = why
	return true
}

func (t *turn) denied() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.denial
}

// outcome is that of a turn that is done.
func (t *turn) outcome() wire.Outcome {
	t.mu.Lock()
	r, denial := t.result, t.denial
	t.mu.Unlock()
	switch r.Status {
	case "completed":
		return wire.Outcome{StopReason: agentserver.StopEndTurn}
	case "interrupted":
		if denial != "" && !t.isCancelled() {
			return wire.Outcome{StopReason: agentserver.StopError, Error: denial}
		}
		return wire.Outcome{StopReason: agentserver.StopCancelled}
	case "failed":
		if r.Error == nil {
			r.Error = &turnError{Message: "codex says no more than that the turn has failed"}
		}
		if r.Error.refuses() {
			return wire.Outcome{StopReason: agentserver.StopRefusal}
		}
		return wire.Outcome{StopReason: agentserver.StopError, Error: r.Error.text()}
	}
	return wire.Outcome{StopReason: agentserver.StopError, Error: fmt.Sprintf("codex ended the turn as %q", r.Status)}
}

// structured is the reply to a schema, if it is JSON.
func (t *turn) structured() json.RawMessage {
	if len(t.schema) == 0 {
		return nil
	}
	select {
	case <-t.done: // what is said has been said
	default:
		return nil
	}
	reply := bytes.TrimSpace([]byte(t.last))
	if t.outcome().StopReason != agentserver.StopEndTurn || !json.Valid(reply) {
		return nil
	}
	return reply
}

// text is the error in one line.
func (e *turnError) text() string {
	text := e.Message
	if e.Details != "" {
		text += ": " + e.Details
	}
	return oneLine(text)
}

// word is the kind of the error.
func (e *turnError) word() string {
	var word string
	_ = json.Unmarshal(e.Info, &word) // another form has no word
	return word
}

// refuses: the model would not do it.
func (e *turnError) refuses() bool {
	return slices.Contains([]string{"cyberPolicy", "bioPolicy", "misalignmentPolicyViolation"}, e.word())
}

// status is that of the HTTP answer that was the error, or 0.
func (e *turnError) status() int {
	var info map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	_ = json.Unmarshal(e.Info, &info) // another form has no status
	for _, i := range info {
		return i.Status
	}
	return 0
}
