package codex

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/Insights/insightscli/internal/agentserver"
)

// item has the fields of all items of a turn that we look at.
type item struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Text   string `json:"text"`
	Status string `json:"status"` // inProgress, completed, failed, declined

	Summary json.RawMessage `json:"summary"` // texts
	Content json.RawMessage `json:"content"` // texts, of reasoning

	Command  string `json:"command"`
	Dir      string `json:"cwd"`
	Output   string `json:"aggregatedOutput"`
	ExitCode *int   `json:"exitCode"`

	Changes []change `json:"changes"`

	Server    string          `json:"server"`
	Namespace string          `json:"namespace"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error"`
	Success *bool `json:"success"`

	Query  string `json:"query"`
	Path   string `json:"path"`
	Prompt string `json:"prompt"`
}

// change is one file of a fileChange.
type change struct {
	Path string `json:"path"`
	Kind struct {
		Type string `json:"type"`
	} `json:"kind"`
	Diff string `json:"diff"`
}

// tool is a tool call that is going on.
type tool struct {
	call agentserver.ToolCall
	turn string
}

// item tells of an item that has begun or is over. t is nil for one of an earlier turn.
func (d *driver) item(ctx context.Context, t *turn, raw json.RawMessage, over bool) {
	var i item
	if err := json.Unmarshal(raw, &i); err != nil {
		d.host.Log.Warn("codex: item", "err", err)
		return
	}
	switch i.Type {
	case "agentMessage", "plan":
		if t == nil {
			return
		}
		if !over {
			t.said.begin(i.ID)
			return
		}
		d.text(ctx, messageChunk, t.said.end(i.ID, i.Text))
		if i.Text != "" {
			t.last = i.Text
		}
	case "reasoning":
		if over {
			d.reasoned(ctx, i)
		}
	case "contextCompaction":
		if over {
			d.tell(ctx, "info", "codex has shortened the conversation to go on")
		}
	default:
		call, ok := i.call()
		if !ok {
			return
		}
		if t != nil {
			t.said.interrupt()
		}
		d.toolCall(ctx, t, call, over)
	}
}

// reasoned tells the agent's thoughts, where they did not come in pieces.
func (d *driver) reasoned(ctx context.Context, i item) {
	d.mu.Lock()
	told := d.thinking == i.ID
	d.mu.Unlock()
	if told {
		return
	}
	for _, raw := range []json.RawMessage{i.Summary, i.Content} {
		var texts []string
		if json.Unmarshal(raw, &texts) == nil && len(texts) > 0 {
			d.text(ctx, thoughtChunk, strings.Join(texts, "\n\n"))
			return
		}
	}
}

// toolCall tells of a tool call, and keeps it while it is going on.
func (d *driver) toolCall(ctx context.Context, t *turn, call agentserver.ToolCall, over bool) {
	d.mu.Lock()
	_, known := d.tools[call.ID]
	if d.tools == nil {
		d.tools = map[string]tool{}
	}
	if over {
		delete(d.tools, call.ID)
	} else if t != nil {
		d.tools[call.ID] = tool{call: call, turn: t.id()}
	}
	d.mu.Unlock()
	call.SessionUpdate = "tool_call"
	if known || t == nil {
		call.SessionUpdate = "tool_call_update"
		call.RawInput = nil // told before
	}
	d.put(d.host.Update(ctx, call))
}

// closeTools tells that the tool calls of a turn that was broken off are over, of which
// Codex says nothing.
func (d *driver) closeTools(ctx context.Context, t *turn) {
	d.mu.Lock()
	var left []string
	for id, tool := range d.tools {
		if tool.turn == t.id() {
			left = append(left, id)
			delete(d.tools, id)
		}
	}
	d.mu.Unlock()
	for _, id := range left {
		d.put(d.host.Update(ctx, agentserver.ToolCall{SessionUpdate: "tool_call_update", ID: id, Status: "failed"}))
	}
}

// call is the item as a tool call; false if it is none.
func (i *item) call() (agentserver.ToolCall, bool) {
	c := agentserver.ToolCall{ID: i.ID, Status: i.status(), Kind: "other"}
	switch i.Type {
	case "commandExecution":
		command := script(i.Command)
		c.Kind, c.Title = "execute", command
		c.RawInput = raw(map[string]string{"command": clip(command, maxText), "cwd": i.Dir})
		if i.ExitCode != nil {
			c.RawOutput = raw(map[string]int{"exitCode": *i.ExitCode})
		}
		c.Content = content(i.Output)
	case "fileChange":
		c.Kind, c.Title, c.RawInput, c.Content = "edit", changeTitle(i.Changes), changeInput(i.Changes), content(diffs(i.Changes))
	case "mcpToolCall":
		c.Title, c.RawInput = "mcp__"+i.Server+"__"+i.Tool, bounded(i.Arguments)
		c.RawOutput, c.Content = bounded(i.Result), content(i.resultText())
	case "dynamicToolCall":
		c.Title, c.RawInput = i.Tool, bounded(i.Arguments)
	case "webSearch":
		c.Kind, c.Title = "fetch", "search the web: "+i.Query
		c.RawInput = raw(map[string]string{"query": clip(i.Query, maxText)})
	case "imageView":
		c.Kind, c.Title = "read", "view "+i.Path
	case "collabAgentToolCall":
		c.Title, c.RawInput = i.Tool, raw(map[string]string{"prompt": clip(i.Prompt, maxText)})
	case "imageGeneration":
		c.Title = "make an image"
	default:
		return c, false
	}
	c.Title = title(c.Title)
	return c, true
}

// status is that of a tool call. Some items have none, and are over when they are told
// to be.
func (i *item) status() string {
	switch i.Status {
	case "inProgress":
		return "in_progress"
	case "failed", "declined":
		return "failed"
	}
	if i.Success != nil && !*i.Success {
		return "failed"
	}
	return "completed"
}

// resultText is the text of the result of an MCP tool.
func (i *item) resultText() string {
	if i.Error != nil {
		return i.Error.Message
	}
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	_ = json.Unmarshal(i.Result, &result) // another form has no text
	var texts []string
	for _, c := range result.Content {
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func changeTitle(changes []change) string {
	paths := make([]string, 0, len(changes))
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return "edit " + strings.Join(paths, ", ")
}

func changeInput(changes []change) json.RawMessage {
	files := make([]map[string]string, 0, len(changes))
	for _, c := range changes {
		files = append(files, map[string]string{"path": c.Path, "kind": c.Kind.Type})
	}
	return bounded(raw(map[string]any{"changes": files}))
}

func diffs(changes []change) string {
	var b strings.Builder
	for _, c := range changes {
		if len(changes) > 1 {
			b.WriteString(c.Path + "\n")
		}
		b.WriteString(c.Diff)
	}
	return b.String()
}

// content is text as the content of a tool call; a long one without its middle.
func content(text string) []agentserver.ToolContent {
	if text == "" {
		return nil
	}
	if len(text) > maxText {
		text = clip(text, maxText/2) + "\n…\n" + strings.ToValidUTF8(text[len(text)-maxText/2:], "")
	}
	return agentserver.TextContent(text)
}

// title is one line of bounded length.
func title(text string) string {
	const limit = 300
	if line := oneLine(text); len(line) > limit {
		return clip(line, limit) + "…"
	}
	return oneLine(text)
}

// raw encodes what always can be.
func raw(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}

// bounded is a value of an agent, or what it is where it is too long for the journal.
func bounded(value json.RawMessage) json.RawMessage {
	const limit = 128 << 10
	switch {
	case len(value) > limit:
		return raw(map[string]int{"bytesLeftOut": len(value)})
	case string(value) == "null":
		return nil
	}
	return value
}
