package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// maxLoad is how much of one line is read to show it, and maxItem of all of one item.
	maxLoad = 1 << 20
	maxItem = 2 << 20
)

// item is one thing of a conversation, decoded.
type item struct {
	head   uint32
	kind   kind
	at     time.Time // of its first event
	until  time.Time // of its last
	bad    bool
	hidden int64 // bytes that were not read, because there are too many

	text string // what it says, as it was said
	mark string // a word before it

	tool   *toolCall
	plan   []planEntry
	pieces []piece
	asks   *task.Permission
	answer string
	result *task.Result
}

// piece is output of one stream.
type piece struct {
	err  bool
	text string
}

// toolCall is what an agent did.
type toolCall struct {
	title, kind, status string
	input               json.RawMessage
	output              json.RawMessage
	content             []toolContent
	places              []string
}

// toolContent is a part of what came of a tool: text, or the change of a file.
type toolContent struct {
	text     string
	path     string // of a change
	old, new string
}

type planEntry struct {
	Content, Status, Priority string
}

// loadItem reads and decodes the events of an item.
func loadItem(log io.ReaderAt, refs []ref, raw bool) (item, error) {
	it := item{head: refs[0].seq, kind: missing}
	room := int64(maxItem)
	for i, r := range refs {
		n := min(r.size, maxLoad, room)
		room -= n
		it.hidden += r.size - n
		if n == 0 {
			continue
		}
		line := make([]byte, n)
		if got, err := log.ReadAt(line, r.off); err != nil && !errors.Is(err, io.EOF) {
			return it, err
		} else if int64(got) < n {
			line = line[:got]
		}
		if raw || n < r.size {
			it.addRaw(line, n < r.size)
			continue
		}
		it.add(bytes.TrimSuffix(line, []byte{'\n'}), i == 0)
	}
	return it, nil
}

// addRaw shows a line as it is stored.
func (it *item) addRaw(line []byte, cut bool) {
	if it.kind == missing {
		it.kind = other
	}
	if cut {
		line = bytes.ToValidUTF8(line, nil)
	}
	it.text += string(bytes.TrimSuffix(line, []byte{'\n'}))
}

// add takes the next event of the item.
func (it *item) add(line []byte, first bool) {
	ev, err := task.ParseLine(line)
	if err != nil {
		it.addRaw(line, false)
		return
	}
	c := classify(ev.Method, ev.Params)
	if first {
		it.kind, it.at = c.kind, ev.At
	}
	it.until, it.bad = ev.At, it.bad || c.bad
	switch c.kind {
	case message, thought, user:
		it.addText(ev)
	case tool, toolUpdate:
		it.kind = tool
		it.addTool(ev)
	case output:
		it.addOutput(ev)
	case plan:
		it.plan = planOf(ev)
	case permission:
		it.asks = decoded[task.Permission](ev)
	case answered:
		it.answer = answerOf(ev)
	case finished:
		it.result = decoded[task.Result](ev)
	default:
		it.addLine(c.kind, ev)
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

// addText takes what somebody said.
func (it *item) addText(ev task.Event) {
	var p struct {
		Content string // of _insights/user_message
		Update  struct{ Content json.RawMessage }
	}
	if json.Unmarshal(ev.Params, &p) != nil {
		it.text += string(ev.Params)
		return
	}
	if p.Update.Content != nil {
		p.Content = blockText(p.Update.Content)
	}
	it.text += p.Content
}

// blockText is the text of a content block; of another block it is a word for it.
func blockText(raw json.RawMessage) string {
	var b struct{ Type, Text, URI, Name string }
	switch {
	case json.Unmarshal(raw, &b) != nil:
		return string(raw)
	case b.Type == "text" || b.Type == "":
		return b.Text
	}
	return strings.TrimSpace("[" + b.Type + "] " + b.Name + " " + b.URI)
}

func (it *item) addTool(ev task.Event) {
	var p struct {
		Update struct {
			Title, Kind, Status string
			RawInput            json.RawMessage `json:"rawInput"`
			RawOutput           json.RawMessage `json:"rawOutput"`
			Content             []json.RawMessage
			Locations           []struct{ Path string }
		}
	}
	if it.tool == nil {
		it.tool = &toolCall{}
	}
	if json.Unmarshal(ev.Params, &p) != nil {
		it.text += string(ev.Params)
		return
	}
	t, u := it.tool, p.Update
	take(&t.title, u.Title)
	take(&t.kind, u.Kind)
	take(&t.status, u.Status)
	if len(u.RawInput) > 0 && string(u.RawInput) != "null" {
		t.input = u.RawInput
	}
	if len(u.RawOutput) > 0 && string(u.RawOutput) != "null" {
		t.output = u.RawOutput
	}
	if len(u.Locations) > 0 {
		t.places = nil
		for _, l := range u.Locations {
			t.places = append(t.places, l.Path)
		}
	}
	if u.Content != nil { // each report has all of it
		t.content = nil
		for _, raw := range u.Content {
			t.content = append(t.content, contentOf(raw))
		}
	}
}

func take(dst *string, s string) {
	if s != "" {
		*dst = s
	}
}

func contentOf(raw json.RawMessage) toolContent {
	var c struct {
		Type, Path, OldText, NewText string
		Content                      json.RawMessage
	}
	switch {
	case json.Unmarshal(raw, &c) != nil:
		return toolContent{text: string(raw)}
	case c.Type == "diff":
		return toolContent{path: c.Path, old: c.OldText, new: c.NewText}
	case c.Type == "content":
		return toolContent{text: blockText(c.Content)}
	}
	return toolContent{text: string(raw)}
}

// addOutput takes a piece of what a command said.
func (it *item) addOutput(ev task.Event) {
	o, err := ev.Output()
	if err != nil {
		it.pieces = append(it.pieces, piece{true, string(ev.Params)})
		return
	}
	if o.ExitCode != nil {
		it.mark = "exit code " + itoa(*o.ExitCode)
		return
	}
	stream, b, err := o.Bytes()
	if err != nil {
		return
	}
	isErr := stream == task.Stderr
	if n := len(it.pieces); n > 0 && it.pieces[n-1].err == isErr {
		it.pieces[n-1].text += string(b)
		return
	}
	it.pieces = append(it.pieces, piece{isErr, string(b)})
}

func planOf(ev task.Event) []planEntry {
	var p struct {
		Update struct{ Entries []planEntry }
	}
	_ = json.Unmarshal(ev.Params, &p) // a plan that is none has no entries
	return p.Update.Entries
}

func answerOf(ev task.Event) string {
	var p struct{ OptionID, By string }
	_ = json.Unmarshal(ev.Params, &p) // of what is none nothing is known
	if p.By == "default" {
		return p.OptionID + " (nobody answered)"
	}
	return p.OptionID
}

// addLine takes an event that is one line.
func (it *item) addLine(k kind, ev task.Event) {
	switch k {
	case step:
		if s := decoded[task.Step](ev); s != nil {
			it.text = s.Label
			if s.Detail != "" {
				it.text += ": " + s.Detail
			}
			return
		}
	case notice:
		if n := decoded[task.Notice](ev); n != nil {
			it.mark, it.text = map[string]string{"warn": "warning: ", "error": "error: "}[n.Level], n.Message
			return
		}
	case denied:
		if d := decoded[task.Denied](ev); d != nil && d.Host != "" {
			it.mark, it.text = "denied: ", deniedText(*d)
			return
		}
	case published:
		if p := decoded[task.Published](ev); p != nil && p.Org != "" {
			it.mark, it.text = "published: ", publishedText(*p)
			return
		}
	case turn:
		if t := decoded[task.Turn](ev); t != nil {
			it.mark, it.text = turnText(*t)
			return
		}
	}
	it.mark, it.text = string(ev.Kind)+": ", string(ev.Params)
}

func deniedText(d task.Denied) string {
	s := d.Host
	if d.Port != 0 {
		s += ":" + itoa(d.Port)
	}
	if d.Count > 1 {
		s += " ×" + itoa(d.Count)
	}
	if d.Reason != "" {
		s += ", " + d.Reason
	}
	if d.Rule != "" {
		s += " (--allow " + d.Rule + ")"
	}
	return s
}

func publishedText(p task.Published) string {
	if p.Pull != 0 {
		return "pull request " + p.Org + "/" + p.Name + "#" + itoa(p.Pull) + " " + p.URL
	}
	return "commit " + p.SHA[:min(len(p.SHA), 12)] + " on " + p.Org + "/" + p.Name + " " + p.Branch + " " + p.URL
}

func turnText(t task.Turn) (mark, text string) {
	switch {
	case !t.OK:
		return "turn " + itoa(t.Number) + " failed: ", t.Error
	case t.Degraded:
		return "turn " + itoa(t.Number) + ": ", "the reply fits only after others did not, and says nothing"
	case t.Attempts > 1:
		return "turn " + itoa(t.Number) + ": ", "done, at attempt " + itoa(t.Attempts)
	}
	return "turn " + itoa(t.Number) + ": ", "done"
}
