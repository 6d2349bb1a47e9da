package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/linediff"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// toolCall is what an agent did.
type toolCall struct {
	id, title, kind, status string

	input, output json.RawMessage
	parts         []toolPart
	began         time.Time
	at            string
	took          string
}

// toolPart is a part of what came of a tool: text, or the change of a file.
type toolPart struct {
	text   string
	path   string // of a change
	change []linediff.Line
}

type planEntry struct{ Content, Status string }

// agentUpdate is as much of an ACP session/update as is shown.
type agentUpdate struct {
	Update struct {
		SessionUpdate string          `json:"sessionUpdate"`
		ToolCallID    string          `json:"toolCallId"`
		Title         string          `json:"title"`
		Kind          string          `json:"kind"`
		Status        string          `json:"status"`
		Content       json.RawMessage `json:"content"`
		RawInput      json.RawMessage `json:"rawInput"`
		RawOutput     json.RawMessage `json:"rawOutput"`
		Entries       []planEntry     `json:"entries"`
	} `json:"update"`
}

// agent takes a session/update.
func (t *teller) agent(ev task.Event, at string) {
	u := decoded[agentUpdate](ev)
	if u == nil {
		return
	}
	switch name := strings.TrimSuffix(u.Update.SessionUpdate, "_chunk"); name {
	case "agent_message":
		t.say(agent, at, blockText(u.Update.Content))
	case "agent_thought":
		t.say(thinking, at, blockText(u.Update.Content))
	case "user_message":
		t.say(user, at, blockText(u.Update.Content))
	case "tool_call", "tool_call_update":
		t.settle()
		t.tool(u, ev.At, at)
	case "plan":
		t.settle()
		t.page.plan(u.Update.Entries, at)
	}
}

// tool takes the beginning of a tool call, or what has changed of it. It is written when
// it has ended.
func (t *teller) tool(u *agentUpdate, now time.Time, at string) {
	v := u.Update
	i := slices.IndexFunc(t.tools, func(c *toolCall) bool { return c.id == v.ToolCallID })
	if i < 0 {
		if len(t.tools) >= maxTools {
			t.release(0)
		}
		t.tools = append(t.tools, &toolCall{id: v.ToolCallID, began: now, at: at})
		i = len(t.tools) - 1
	}
	c := t.tools[i]
	take(&c.title, v.Title)
	take(&c.kind, v.Kind)
	take(&c.status, v.Status)
	keep(&c.input, v.RawInput)
	keep(&c.output, v.RawOutput)
	if len(v.Content) > 0 { // each report has all of it
		c.parts = partsOf(v.Content)
	}
	if c.status == "completed" || c.status == "failed" {
		if took := now.Sub(c.began); took > 0 {
			c.took = render.Took(took)
		}
		t.release(i)
	}
}

// release writes a tool as it is.
func (t *teller) release(i int) {
	c := t.tools[i]
	t.tools = slices.Delete(t.tools, i, i+1)
	if c.title == "" {
		c.title = c.kind
	}
	t.page.tool(*c, c.at)
}

func take(dst *string, s string) {
	if s != "" {
		*dst = s
	}
}

func keep(dst *json.RawMessage, raw json.RawMessage) {
	if len(raw) > 0 && string(raw) != "null" {
		*dst = raw
	}
}

// result is what came of the tool: its content, else its own form of its output.
func (c *toolCall) result() []toolPart {
	if len(c.parts) > 0 || len(c.output) == 0 {
		return c.parts
	}
	return []toolPart{{text: valueText(c.output)}}
}

func partsOf(raw json.RawMessage) []toolPart {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	var parts []toolPart
	for _, one := range all {
		var c struct {
			Type, Path, OldText, NewText string
			Content                      json.RawMessage
		}
		switch {
		case json.Unmarshal(one, &c) != nil:
			parts = append(parts, toolPart{text: string(one)})
		case c.Type == "diff":
			parts = append(parts, toolPart{path: c.Path, change: linediff.Lines(c.OldText, c.NewText)})
		case c.Type == "content":
			if text := unfenced(blockText(c.Content)); strings.TrimSpace(text) != "" {
				parts = append(parts, toolPart{text: text})
			}
		default:
			parts = append(parts, toolPart{text: string(one)})
		}
	}
	return parts
}

// blockText is the text of a content block; of another block it is a word for it.
func blockText(raw json.RawMessage) string {
	var b struct{ Type, Text, URI, Name string }
	switch {
	case len(raw) == 0:
		return ""
	case json.Unmarshal(raw, &b) != nil:
		return string(raw)
	case b.Type == "text" || b.Type == "":
		return b.Text
	}
	return strings.TrimSpace("[" + b.Type + "] " + b.Name + " " + b.URI)
}

// unfenced is text without a fence around all of it, as agents put the output of a command.
func unfenced(s string) string {
	segments := splitFences(strings.TrimSpace(s))
	if len(segments) == 1 && segments[0].code {
		return segments[0].text
	}
	return s
}

// field is an argument of a tool.
type field struct{ name, text string }

// fields are the members of a JSON object, in their order; of another value there is one
// without a name.
func fields(raw json.RawMessage) []field {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return []field{{"", valueText(raw)}}
	}
	var all []field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			break
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			break
		}
		text, _ := name.(string) // a member's name always is one
		all = append(all, field{text, valueText(v)})
	}
	return all
}

// valueText is a JSON value for people: a text as it is, anything else as JSON.
func valueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return indented(raw)
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// changeText is a change as text.
func changeText(lines []linediff.Line) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Op == '@' {
			b.WriteString("@@\n")
			continue
		}
		b.WriteByte(l.Op)
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}
