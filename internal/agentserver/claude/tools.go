package claude

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/Insights/insightscli/internal/agentserver"
)

// structured is the tool by which the program takes a reply that has a schema.
const structured = "StructuredOutput"

// maxText bounds what a tool was given and what it gave, in one event: a frame holds as
// much however it is escaped.
const maxText = 128 << 10

// maxTitle bounds the title of a tool call.
const maxTitle = 200

// tool is what is shown of the calls of one tool.
type tool struct {
	kind  string // of ACP
	verb  string
	field string // of the input: what it is done to
}

// known are the program's own tools.
func known(name string) (tool, bool) {
	switch name {
	case "Bash", "PowerShell":
		return tool{"execute", "Run", "command"}, true
	case "Read", "NotebookRead":
		return tool{"read", "Read", "file_path"}, true
	case "Write":
		return tool{"edit", "Write", "file_path"}, true
	case "Edit", "MultiEdit":
		return tool{"edit", "Edit", "file_path"}, true
	case "NotebookEdit":
		return tool{"edit", "Edit", "notebook_path"}, true
	case "Grep":
		return tool{"search", "Search", "pattern"}, true
	case "Glob":
		return tool{"search", "Find", "pattern"}, true
	case "LS":
		return tool{"search", "List", "path"}, true
	case "WebFetch":
		return tool{"fetch", "Fetch", "url"}, true
	case "WebSearch":
		return tool{"fetch", "Search the web", "query"}, true
	case "Task", "Agent":
		return tool{"think", "Agent", "description"}, true
	case "Skill":
		return tool{"other", "Skill", "skill"}, true
	case "ToolSearch":
		return tool{"other", "Find tools", "query"}, true
	case structured:
		return tool{"other", "Reply", ""}, true
	}
	return tool{}, false
}

// describe is the title and the kind of a call.
func describe(name string, input json.RawMessage) (title, kind string) {
	t, ok := known(name)
	if !ok {
		if rest, mcp := strings.CutPrefix(name, "mcp__"); mcp {
			return strings.Replace(rest, "__", ": ", 1), "other"
		}
		return name, "other"
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // what is not an object has no fields
	object := oneLine(stringOf(fields[t.field]))
	if object == "" {
		return t.verb, t.kind
	}
	head, rest := cut(object, maxTitle)
	if rest != "" {
		head += "…"
	}
	return t.verb + ": " + head, t.kind
}

// call takes the beginning of a tool call. sub: it is a subagent's.
func (v *view) call(ctx context.Context, b block, sub bool) {
	switch {
	case b.ID == "":
		return
	case b.Name == "TodoWrite":
		v.plan(ctx, b.Input)
		return
	case b.Name == structured && b.ID == v.tool:
		v.inputs[b.ID] = json.RawMessage(v.input.String())
		v.tool = ""
	}
	title, kind := describe(b.Name, b.Input)
	if sub {
		title = "subagent: " + title
	}
	v.open[b.ID] = b.Name == structured
	v.update(ctx, agentserver.ToolCall{
		SessionUpdate: "tool_call", ID: b.ID, Title: title, Kind: kind, Status: "in_progress",
		RawInput: bounded(b.Input),
	})
}

// returned takes the result of a tool call.
func (v *view) returned(ctx context.Context, id, text string, failed bool) {
	isReply, ok := v.open[id]
	if !ok {
		return // of a plan, or told before
	}
	delete(v.open, id)
	if isReply {
		v.d.replied(v.inputs[id], failed)
		delete(v.inputs, id)
	}
	u := agentserver.ToolCall{SessionUpdate: "tool_call_update", ID: id, Status: "completed"}
	if failed {
		u.Status = "failed"
	}
	if head, rest := cut(text, maxText); head != "" {
		if rest != "" {
			head += "\n…"
		}
		u.Content = agentserver.TextContent(head)
	}
	v.update(ctx, u)
}

// closeTools ends the calls that will have no result any more.
func (v *view) closeTools(ctx context.Context) {
	for id := range v.open {
		v.update(ctx, agentserver.ToolCall{SessionUpdate: "tool_call_update", ID: id, Status: "failed"})
	}
	clear(v.open)
}

func (v *view) update(ctx context.Context, u any) {
	v.spoken, v.parted = false, false
	v.d.log(ctx, v.d.host.Update(ctx, u))
}

// plan takes the agent's list of things to do.
func (v *view) plan(ctx context.Context, input json.RawMessage) {
	var list struct {
		Todos []struct{ Content, Status string } `json:"todos"`
	}
	if tolerant(json.Unmarshal(input, &list)) != nil || len(input) > maxText {
		return
	}
	entries := make([]map[string]string, 0, len(list.Todos))
	for _, t := range list.Todos {
		entries = append(entries, map[string]string{"content": t.Content, "status": t.Status, "priority": "medium"})
	}
	v.update(ctx, map[string]any{"sessionUpdate": "plan", "entries": entries})
}

// bounded is input, or what is left of it where a frame would not hold it.
func bounded(input json.RawMessage) json.RawMessage {
	if len(input) <= maxText {
		return input
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return nil
	}
	kept, size := map[string]any{}, 0
	for name, value := range fields {
		if size += len(name) + len(value); size < maxText {
			kept[name] = value
		} else {
			size -= len(name) + len(value)
			kept[name] = "…"
		}
	}
	if b, err := json.Marshal(kept); err == nil && len(b) <= 2*maxText {
		return b
	}
	return nil
}

// replied counts a structured reply that the program found not to fit, or keeps the one
// that it took.
func (d *driver) replied(written json.RawMessage, rejected bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.turn == nil:
	case rejected:
		d.turn.rejected++
	default:
		d.turn.accepted = written
	}
}
