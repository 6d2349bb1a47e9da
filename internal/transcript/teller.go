package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// maxWords bounds a text that is put together from pieces; a longer one becomes several.
	maxWords = 256 << 10
	// maxTools is how many tools may be at work at once; of more the oldest is written as
	// it is.
	maxTools = 64
	// maxUnknown is how much is shown of an event that this version does not know.
	maxUnknown = 4 << 10
)

// page is one format of a transcript. Texts are not clean: each format cleans and escapes
// what it writes.
type page interface {
	head(a About)
	words(who speaker, at, text string)
	tool(t toolCall, at string)
	plan(entries []planEntry, at string)
	line(l line, at string)
	output(at string)                    // what a command says begins
	piece(stream task.Stream, b []byte)  // of it, clean
	outputEnd()                          // it ends
	value(title, at string, text string) // JSON
	foot()
	err() error
}

type speaker int

const (
	agent speaker = iota
	thinking
	user
)

// line is an event that is one line.
type line struct {
	mark string // a word of ours before it
	text string
	bad  bool
	good bool
}

// teller folds events into the parts of a page.
type teller struct {
	page    page
	options Options
	begin   time.Time

	who   speaker
	said  strings.Builder // the words that go on
	at    string          // when they began
	tools []*toolCall     // that are at work, the oldest first
	out   *output         // a command's output that goes on
	used  *task.Usage     // since it was last told
}

func newTeller(p page, a About, o Options) *teller {
	p.head(a)
	t := &teller{page: p, options: o, begin: a.Created}
	if a.Prompt != "" {
		p.words(user, "", a.Prompt)
	}
	return t
}

// Event implements Writer.
func (t *teller) Event(ev task.Event) error {
	at := t.when(ev.At)
	switch ev.Kind {
	case task.KindAgent:
		t.agent(ev, at)
	case task.KindOutput:
		t.endWords()
		t.output(ev, at)
	case task.KindUsage:
		if u := decoded[task.Usage](ev); u != nil {
			t.used = u
		}
	case "sdk_session":
	case "turn_complete":
		t.settle()
		t.usage(at)
	default:
		t.settle()
		t.about(ev, at)
	}
	return t.page.err()
}

// Close implements Writer.
func (t *teller) Close() error {
	t.settle()
	for len(t.tools) > 0 {
		t.release(0)
	}
	t.usage("")
	t.page.foot()
	return t.page.err()
}

// when is how long after the beginning something happened.
func (t *teller) when(at time.Time) string {
	if t.begin.IsZero() {
		t.begin = at
	}
	return "+" + render.Took(max(0, at.Sub(t.begin)))
}

// settle ends what goes on.
func (t *teller) settle() {
	t.endWords()
	t.endOutput()
}

func (t *teller) endWords() {
	if t.said.Len() > 0 {
		t.page.words(t.who, t.at, t.said.String())
		t.said.Reset()
	}
}

// say takes a piece of what somebody says.
func (t *teller) say(who speaker, at, text string) {
	t.endOutput()
	if text == "" {
		return
	}
	if t.said.Len() > 0 && (t.who != who || t.said.Len() > maxWords) {
		t.endWords()
	}
	if t.said.Len() == 0 {
		t.who, t.at = who, at
	}
	t.said.WriteString(text)
}

// usage tells what was used of models, if that is news.
func (t *teller) usage(at string) {
	if t.used != nil {
		t.page.line(line{mark: "models", text: render.Tokens(t.used.Run)}, at)
		t.used = nil
	}
}

// about takes an event that is a line.
func (t *teller) about(ev task.Event, at string) {
	switch ev.Kind {
	case task.KindStep:
		t.step(ev, at)
	case task.KindPermission:
		t.asks(ev, at)
	case "permission_resolved":
		t.page.line(line{mark: "answered", text: answer(ev)}, at)
	case "user_message":
		if m := decoded[struct{ Content string }](ev); m != nil && m.Content != "" {
			t.page.words(user, at, m.Content)
		}
	case task.KindTurn:
		t.turn(ev, at)
	case task.KindFinished:
		t.finished(ev, at)
	default:
		t.page.line(told(ev), at)
	}
}

// told is an event as one line.
func told(ev task.Event) line {
	switch ev.Kind {
	case task.KindNotice:
		if n := decoded[task.Notice](ev); n != nil {
			return line{mark: map[string]string{"warn": "warning", "error": "error"}[n.Level], text: n.Message, bad: n.Level == "error"}
		}
	case task.KindDenied:
		if d := decoded[task.Denied](ev); d != nil && d.Host != "" {
			return line{mark: "denied", text: deniedText(*d), bad: true}
		}
	case task.KindPublished:
		if p := decoded[task.Published](ev); p != nil && p.URL != "" {
			return line{mark: "published", text: render.Published(*p), good: true}
		}
	}
	text := string(ev.Params)
	if len(text) > maxUnknown {
		text = text[:maxUnknown] + "…"
	}
	return line{mark: string(ev.Kind), text: text}
}

func deniedText(d task.Denied) string {
	text := render.Place(d)
	if d.Count > 1 {
		text += fmt.Sprintf(", %d times", d.Count)
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

func (t *teller) step(ev task.Event, at string) {
	s := decoded[task.Step](ev)
	if s == nil || s.Status == task.StepCompleted && s.Detail == "" {
		return
	}
	l := line{mark: "step", text: s.Label, bad: s.Status == task.StepFailed}
	if s.Detail != "" {
		l.text += ": " + s.Detail
	}
	t.page.line(l, at)
}

// asks tells what an agent asks leave for.
func (t *teller) asks(ev task.Event, at string) {
	p := decoded[task.Permission](ev)
	if p == nil || p.ToolCall.Title == "" {
		t.page.line(told(ev), at)
		return
	}
	t.page.tool(toolCall{title: "asks for leave: " + p.ToolCall.Title, kind: p.ToolCall.Kind, input: p.ToolCall.Input, status: "asked"}, at)
}

func answer(ev task.Event) string {
	p := decoded[struct{ OptionID, By string }](ev)
	switch {
	case p == nil:
		return string(ev.Params)
	case p.By == "default":
		return p.OptionID + " (nobody answered)"
	}
	return p.OptionID
}

// turn tells what came of a turn, where that is news: its words were there before.
func (t *teller) turn(ev task.Event, at string) {
	turn := decoded[task.Turn](ev)
	switch {
	case turn == nil:
	case !turn.OK:
		t.page.line(line{mark: fmt.Sprintf("turn %d failed", turn.Number), text: turn.Error, bad: true}, at)
	case turn.Degraded:
		t.page.line(line{mark: "warning", text: fmt.Sprintf("the reply fits only at attempt %d, and says nothing", turn.Attempts)}, at)
	}
	if turn != nil && len(turn.Value) > 0 {
		t.page.value("the validated reply", at, indented(turn.Value))
	}
	t.usage(at)
}

func (t *teller) finished(ev task.Event, at string) {
	for len(t.tools) > 0 {
		t.release(0)
	}
	r := decoded[task.Result](ev)
	if r == nil {
		t.page.line(told(ev), at)
		return
	}
	t.used = nil // the result has it
	for i, text := range render.Final(*r) {
		l := line{text: text}
		if i == 0 {
			l.mark, l.bad, l.good = "result", r.State != task.StateCompleted, r.State == task.StateCompleted
		}
		t.page.line(l, at)
	}
	if r.Error != "" {
		t.page.line(line{mark: "error", text: r.Error, bad: true}, at)
	}
}

// decoded reads the parameters of an event; nil where they are not what they should be.
func decoded[T any](ev task.Event) *T {
	var v T
	if json.Unmarshal(ev.Params, &v) != nil {
		return nil
	}
	return &v
}
