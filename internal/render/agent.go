package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/task"
)

// update is as much of an ACP session/update as is shown.
type update struct {
	Update struct {
		SessionUpdate string          `json:"sessionUpdate"`
		ToolCallID    string          `json:"toolCallId"`
		Content       json.RawMessage `json:"content"`
		Title         string          `json:"title"`
		Status        string          `json:"status"`
	} `json:"update"`
}

// agent writes what an agent says to the output stream and what it does to the
// error stream. Thoughts, plans and the progress of a tool are in the log only; how a tool
// ended is told to those who asked for every event.
func (t *Text) agent(ev task.Event) {
	var u update
	if json.Unmarshal(ev.Params, &u) != nil {
		return
	}
	switch u.Update.SessionUpdate {
	case "agent_message", "agent_message_chunk":
		if text := blockText(u.Update.Content); text != "" {
			t.data(t.words(), []byte(text))
			t.talking = !strings.HasSuffix(text, "\n")
		}
	case "tool_call":
		t.End()
		t.remember(u.Update.ToolCallID, u.Update.Title)
		if !t.o.Quiet {
			t.line("* ", u.Update.Title)
		}
	case "tool_call_update":
		t.remember(u.Update.ToolCallID, u.Update.Title)
		if t.o.Every && !t.o.Quiet {
			t.toolEnded(u)
		}
	}
}

// Overlook takes note of an event that is not shown: what tells how a tool ended comes
// without its title.
func (t *Text) Overlook(ev task.Event) {
	if !t.o.Every || ev.Kind != task.KindAgent || !bytes.Contains(ev.Params, []byte(`"tool_call`)) {
		return
	}
	u := decode[update](ev).Update
	t.remember(u.ToolCallID, u.Title)
}

// maxTitles bounds how many tools are remembered.
const maxTitles = 1000

// remember keeps the title of a tool for its end, which comes without one.
func (t *Text) remember(id, title string) {
	if !t.o.Every || title == "" {
		return
	}
	if t.titles == nil || len(t.titles) >= maxTitles {
		t.titles = map[string]string{}
	}
	t.titles[id] = title
}

// toolEnded tells how a tool ended, and of one that failed the first line that it said.
func (t *Text) toolEnded(u update) {
	name := cmp.Or(u.Update.Title, t.titles[u.Update.ToolCallID], u.Update.ToolCallID)
	switch u.Update.Status {
	case "completed":
		t.End()
		t.line("* done: ", name)
	case "failed":
		t.End()
		t.line("* failed: ", joined(name, firstWords(u.Update.Content)))
	}
}

// firstWords is the first line of a tool's content.
func firstWords(raw json.RawMessage) string {
	var parts []struct{ Content json.RawMessage }
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		line, _, _ := strings.Cut(strings.TrimSpace(blockText(p.Content)), "\n")
		if line != "" {
			return line
		}
	}
	return ""
}

// words is the stream that the agent's words go to. Where a reply of a certain form is
// wanted, the output is that reply and nothing else.
func (t *Text) words() task.Stream {
	if t.o.ValueOnly {
		return task.Stderr
	}
	return task.Stdout
}

// endWords ends the agent's words with its turn, so that what follows begins a line, and
// writes the reply if that is what the output is for. The end of a turn of the agent's
// own ends them too: a reply that does not fit is asked for again.
func (t *Text) endWords(ev task.Event) {
	switch ev.Kind {
	case task.KindTurn:
		t.End()
		t.value(ev)
	case "turn_complete":
		t.End()
	}
}

// End ends the line that the agent's words left open: for whoever shows no turn.
func (t *Text) End() {
	if t.talking {
		t.data(t.words(), []byte{'\n'})
		t.talking = false
	}
}

// value writes the validated reply of a turn, on a line of its own.
func (t *Text) value(ev task.Event) {
	var turn task.Turn
	if !t.o.ValueOnly || json.Unmarshal(ev.Params, &turn) != nil || len(turn.Value) == 0 {
		return
	}
	t.settle()
	t.data(task.Stdout, append(turn.Value, '\n'))
}

// turn says what came of a turn, where that is news.
func (t *Text) turn(ev task.Event) {
	var turn task.Turn
	if json.Unmarshal(ev.Params, &turn) != nil {
		return
	}
	t.settle()
	switch {
	case !turn.OK && !t.o.ReasonFollows:
		t.line("failed: ", turn.Error)
	case turn.Degraded:
		t.line("warning: ", fmt.Sprintf("the reply fits only at attempt %d, and says nothing", turn.Attempts))
	case turn.OK && turn.Attempts > 1:
		t.line("note: ", fmt.Sprintf("the reply fits at attempt %d", turn.Attempts))
	case turn.OK && t.o.Every:
		t.line("turn: ", fmt.Sprintf("%d is done", turn.Number))
	}
}

// said shows what somebody said to the agent.
func (t *Text) said(ev task.Event) {
	var m struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(ev.Params, &m) == nil && m.Content != "" {
		t.line("> ", m.Content)
	}
}

// blockText is the text of one content block; other blocks have none.
func blockText(raw json.RawMessage) string {
	var block struct{ Type, Text string }
	if json.Unmarshal(raw, &block) != nil || block.Type != "text" {
		return ""
	}
	return block.Text
}

// permission is what an agent asks leave for, with the words by which `send` answers.
func permission(params json.RawMessage) string {
	var p task.Permission
	if json.Unmarshal(params, &p) != nil || p.ToolCall.Title == "" {
		return string(params)
	}
	if p.RequestID == "" {
		return p.ToolCall.Title
	}
	options := make([]string, 0, len(p.Options))
	for _, o := range p.Options {
		options = append(options, o.ID)
	}
	return fmt.Sprintf("%s (request %s: %s)", p.ToolCall.Title, p.RequestID, strings.Join(options, ", "))
}

// denied names the connection that was refused, and by what.
func denied(params json.RawMessage) string {
	var d task.Denied
	if json.Unmarshal(params, &d) != nil || d.Host == "" {
		return string(params)
	}
	text := Place(d)
	if d.Count > 1 {
		text += fmt.Sprintf(", %d times", d.Count)
	}
	return joined(text, d.Reason)
}

// published is what was published.
func published(params json.RawMessage) string {
	var p task.Published
	if json.Unmarshal(params, &p) != nil || p.URL == "" {
		return string(params)
	}
	return Published(p)
}

// used is what one request to a model used.
func used(params json.RawMessage) string {
	var u task.Usage
	if json.Unmarshal(params, &u) != nil {
		return string(params)
	}
	return u.Model + ": " + Tokens(u.Request)
}
