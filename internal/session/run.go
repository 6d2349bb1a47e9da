package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// endBound is how long telling the end of a conversation may take, also when the session
// was cancelled.
const endBound = 2 * time.Minute

// Conversation is one agent that is talked to.
type Conversation interface {
	// Send says something and returns what came of it. The first call begins the
	// conversation. An error means that there is no turn.
	Send(ctx context.Context, prompt string, schema json.RawMessage, label string) (task.Turn, error)
	// End ends it, in the state task.StateCompleted or, with the reason, task.StateFailed.
	// It is called once, also when nothing was ever said.
	End(ctx context.Context, state task.State, reason error) error
}

// Document is everything that came of a script.
type Document struct {
	Title   string                     `json:"title,omitempty"`
	State   task.State                 `json:"state"`
	Error   string                     `json:"error,omitempty"`
	Warning string                     `json:"warning,omitempty"` // of an end that could not be told
	Replies map[string]json.RawMessage `json:"replies"`           // by label; a list where there was a turn for each
	Turns   []Turn                     `json:"turns"`
}

// Turn is one turn of a [Document], with its own label.
type Turn struct {
	Label string `json:"label"`
	task.Turn
}

// session is one script being run.
type session struct {
	conv   Conversation
	told   func(Turn)
	doc    Document
	values values
}

// Run talks through a script. told, where it is set, hears of every turn that is over.
// The Document is complete as far as it goes also with an error, which is the reason why
// the session failed.
func Run(ctx context.Context, s *Script, conv Conversation, told func(Turn)) (Document, error) {
	r := session{conv: conv, told: told, values: values{}, doc: Document{
		Title: s.Title, State: task.StateCompleted, Replies: map[string]json.RawMessage{}, Turns: []Turn{},
	}}
	err := r.all(ctx, s.turns)
	if err != nil {
		r.doc.State, r.doc.Error = task.StateFailed, err.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endBound)
	defer cancel()
	if end := conv.End(ctx, r.doc.State, err); end != nil {
		r.doc.Warning = "the session's end could not be told: " + end.Error()
	}
	return r.doc, err
}

func (r *session) all(ctx context.Context, turns []turn) error {
	for _, t := range turns {
		if !t.when.holds(r.values) {
			continue
		}
		got, err := r.one(ctx, t)
		if err != nil {
			return err
		}
		r.values[t.label], r.doc.Replies[t.label] = got.value, got.raw
	}
	return nil
}

// one carries out one entry: a turn, or one for each element.
func (r *session) one(ctx context.Context, t turn) (said, error) {
	if t.each == nil {
		return r.send(ctx, t, t.label)
	}
	at, ok := r.values.get(t.each)
	items, isList := at.([]any)
	if !ok || !isList {
		return said{}, failed("%s: each: %s is not a list", t.label, strings.Join(t.each, "."))
	}
	values, raws := []any{}, [][]byte{}
	for i, item := range items[:min(len(items), t.max)] {
		r.values["item"], r.values["index"] = item, json.Number(fmt.Sprint(i))
		label, err := r.label(t, i)
		if err != nil {
			return said{}, err
		}
		got, err := r.send(ctx, t, label)
		if err != nil {
			return said{}, err
		}
		values, raws = append(values, got.value), append(raws, got.raw)
	}
	delete(r.values, "item")
	delete(r.values, "index")
	// Put together by hand: marshalling would write <, > and & in another way.
	raw := append(append([]byte{'['}, bytes.Join(raws, []byte{','})...), ']')
	return said{values, raw}, nil
}

// label is the label of one turn of each, which no other one has.
func (r *session) label(t turn, i int) (string, error) {
	label := fmt.Sprintf("%s_%d", t.label, i+1)
	if !t.name.empty() {
		var err error
		if label, err = t.name.fill(r.values); err != nil {
			return "", failed("%s: as: %w", t.label, err)
		}
	}
	for _, other := range r.doc.Turns {
		if other.Label == label {
			return fmt.Sprintf("%s_%d", label, i+1), nil
		}
	}
	return label, nil
}

// said is a reply: as it was said, and for paths into it.
type said struct {
	value any
	raw   json.RawMessage
}

// send does one turn. Its reply is the value where there is a schema, else the text.
func (r *session) send(ctx context.Context, t turn, label string) (said, error) {
	if err := context.Cause(ctx); err != nil {
		return said{}, err
	}
	prompt, err := t.prompt.fill(r.values)
	if err != nil {
		return said{}, failed("%s: prompt: %w", label, err)
	}
	result, err := r.conv.Send(ctx, prompt, t.schema, label)
	if err != nil {
		return said{}, fmt.Errorf("%s: %w", label, err)
	}
	over := Turn{Label: label, Turn: result}
	r.doc.Turns = append(r.doc.Turns, over)
	if r.told != nil {
		r.told(over)
	}
	if !result.OK {
		return said{}, failed("%s: %s", label, result.Error)
	}
	if t.schema == nil {
		raw, err := json.Marshal(result.Text)
		return said{result.Text, raw}, err
	}
	got := said{raw: result.Value}
	dec := json.NewDecoder(bytes.NewReader(result.Value))
	dec.UseNumber()
	if err := dec.Decode(&got.value); err != nil {
		return said{}, failed("%s: the reply is not JSON: %w", label, err)
	}
	return got, nil
}

func failed(format string, args ...any) error {
	return errs.New("session.Run", errs.TaskFailed, "", format, args...)
}
