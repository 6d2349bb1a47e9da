package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// The kinds of words of an agent, as ACP has them.
const (
	said    = "agent_message_chunk"
	thought = "agent_thought_chunk"
)

// view turns the lines of one process into events. One goroutine has it.
type view struct {
	d *driver
	p *process

	current strings.Builder // of the block that the model is streaming
	input   strings.Builder // of the structured reply that the model is streaming
	inputs  map[string]json.RawMessage
	tool    string          // id of that reply
	open    map[string]bool // tool calls that have no result yet
	session string          // that was told
	spoken  bool            // the last that was told is words of a message
	parted  bool            // and another message has begun
	dead    bool            // no turn can be: what comes is not looked at
	apology string          // words of the program in the place of the model's
}

func newView(d *driver, p *process) *view {
	return &view{d: d, p: p, open: map[string]bool{}, inputs: map[string]json.RawMessage{}}
}

// follow handles lines until they end.
func (v *view) follow(life context.Context, lines <-chan []byte) {
	for line := range lines {
		v.line(life, line)
	}
	v.closeTools(life)
}

func (v *view) line(ctx context.Context, line []byte) {
	if v.dead {
		return
	}
	m, err := parse(bytes.TrimSpace(line))
	if err != nil {
		if len(bytes.TrimSpace(line)) > 0 {
			head, _ := cut(string(line), 200)
			v.d.host.Log.Warn("claude wrote what is not JSON", "line", oneLine(head))
		}
		return
	}
	switch m.Type {
	case "stream_event":
		if m.Parent == "" {
			v.stream(ctx, m.Event)
		}
		return // of its own accord it ends no words
	case "assistant":
		v.assistant(ctx, m)
	case "user":
		v.user(ctx, m)
	case "system":
		v.system(ctx, m)
	case "command_lifecycle":
		v.d.lifecycle(m)
	case "result":
		v.result(ctx, m)
	case "control_request":
		v.d.request(ctx, v.p, m)
	case "control_response":
		v.p.answered(m.Response)
	case "control_cancel_request":
		v.p.withdrawn(m.RequestID)
	}
}

// stream takes the model's words as they come.
func (v *view) stream(ctx context.Context, e event) {
	switch e.Type {
	case "message_start", "content_block_start":
		v.parted = v.parted || v.spoken && e.Type == "message_start"
		v.current.Reset()
		v.tool = ""
		if e.Block.Type == "tool_use" && e.Block.Name == structured {
			v.tool = e.Block.ID
			v.input.Reset()
		}
	case "content_block_delta":
		v.current.WriteString(e.Delta.Text + e.Delta.Thinking)
		v.say(ctx, said, e.Delta.Text)
		v.say(ctx, thought, e.Delta.Thinking)
		if v.tool != "" && v.input.Len() < maxLine {
			v.input.WriteString(e.Delta.JSON)
		}
	}
}

// say tells words. Those of two messages in a row are kept apart.
func (v *view) say(ctx context.Context, kind, words string) {
	if words == "" {
		return
	}
	if v.parted && kind == said {
		words = "\n\n" + words
	}
	v.spoken, v.parted = kind == said, false
	v.d.log(ctx, v.d.host.Text(ctx, kind, words))
}

// assistant takes a piece of the model's message: its words, unless they have been
// streamed, and its calls of tools.
func (v *view) assistant(ctx context.Context, m *message) {
	failure := m.APIError || len(m.Error) > 0 && string(m.Error) != "null"
	for _, b := range m.blocks() {
		switch {
		case b.Type == "tool_use":
			v.call(ctx, b, m.Parent != "")
		case m.Parent != "":
			// What a subagent says is for the agent. Its report is the call's result.
		case failure && b.Type == "text":
			v.apology = b.Text
			v.exhausted(stringOf(m.Error))
		case b.Type == "text":
			v.whole(ctx, said, b.Text)
		case b.Type == "thinking":
			v.whole(ctx, thought, b.Thinking)
		}
	}
}

// whole takes a block of which nothing, or all, or the beginning has been streamed.
func (v *view) whole(ctx context.Context, kind, text string) {
	streamed := v.current.String()
	v.current.Reset()
	if rest, ok := strings.CutPrefix(text, streamed); ok {
		v.say(ctx, kind, rest)
	}
}

func (v *view) exhausted(why string) {
	if why != "max_output_tokens" {
		return
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	if v.d.turn != nil {
		v.d.turn.exhausted = true
	}
}

// user takes the results of tools. Other words of that kind are the program's own.
func (v *view) user(ctx context.Context, m *message) {
	for _, b := range m.blocks() {
		if b.Type == "tool_result" {
			v.returned(ctx, b.ToolUse, textOf(b.Content), b.IsError)
		}
	}
}

func (v *view) system(ctx context.Context, m *message) {
	switch m.Subtype {
	case "init":
		v.begins(ctx, m)
	case "api_retry":
		v.notice(ctx, "warn", m.retry())
	case "permission_denied":
		v.returned(ctx, m.ToolUse, stringOf(m.Message), true)
	case "compact_boundary":
		v.notice(ctx, "info", "the agent has shortened its memory of the conversation")
	case "informational":
		v.notice(ctx, "info", stringOf(m.Content))
	}
}

func (v *view) notice(ctx context.Context, level, words string) {
	if words = oneLine(words); words != "" {
		head, _ := cut(words, 1<<10)
		v.d.log(ctx, v.d.host.Notice(ctx, level, head))
	}
}

// begins takes the first line of a turn.
func (v *view) begins(ctx context.Context, m *message) {
	if m.Session != "" && m.Session != v.session {
		v.session = m.Session
		v.d.log(ctx, v.d.host.Event(ctx, "_insights/sdk_session", map[string]string{
			"sessionId": m.Session, "adapter": Name, "version": m.Version,
		}))
	}
	if cause := v.d.begins(v.p, m); cause != "" {
		v.p.blame(cause)
		v.p.end()
		v.dead = true
	}
}

func (v *view) result(ctx context.Context, m *message) {
	v.closeTools(ctx)
	apology := v.apology
	v.apology = ""
	v.spoken, v.parted = false, false
	clear(v.inputs)
	v.d.ended(v.p, m, func() { v.notice(ctx, "warn", apology) })
}

// log tells of an event that could not be written, unless that is because of the end.
func (d *driver) log(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		d.host.Log.Warn("claude: event lost", "err", err)
	}
}
