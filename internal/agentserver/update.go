package agentserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Insights/insightscli/internal/link/wire"
)

// Update puts one ACP session update of the agent into the journal. update marshals to
// an object with the field sessionUpdate. Text that comes in pieces, and what a running
// tool tells again and again, is held back for a moment to become fewer events; a tool's
// update that is too long for an event is cut.
func (h *Host) Update(ctx context.Context, news any) error {
	b, err := json.Marshal(news)
	if err != nil {
		return fmt.Errorf("event %s: %w", wire.EventUpdate, err)
	}
	var u update
	if err := json.Unmarshal(b, &u); err != nil {
		u = update{} // a field of a shape that ACP does not have: somebody's own kind
	}
	if c := u.asChunk(b); c != nil {
		return h.say(ctx, c)
	}
	b = u.fit(b)
	if u.isSnapshot() {
		return h.snapshot(ctx, &u, b)
	}
	return h.toolEvent(ctx, &u, b)
}

// Text is one piece of a text that an agent says: kind is agent_message_chunk,
// agent_thought_chunk or user_message_chunk, as ACP has them. An empty one is nothing.
func (h *Host) Text(ctx context.Context, kind, text string) error {
	return h.say(ctx, plainChunk(kind, text))
}

// Notice puts one line for people into the journal. level is info, warn or error.
func (h *Host) Notice(ctx context.Context, level, message string) error {
	return h.Event(ctx, "_insights/console", map[string]string{"level": level, "message": message})
}

// ToolCall is an ACP tool call of an agent: the first time as it begins, then with what
// has changed.
type ToolCall struct {
	SessionUpdate string          `json:"sessionUpdate"` // tool_call, tool_call_update
	ID            string          `json:"toolCallId"`
	Title         string          `json:"title,omitempty"`
	Kind          string          `json:"kind,omitempty"`   // read, edit, delete, move, search, execute, think, fetch, other
	Status        string          `json:"status,omitempty"` // pending, in_progress, completed, failed
	RawInput      json.RawMessage `json:"rawInput,omitempty"`
	RawOutput     json.RawMessage `json:"rawOutput,omitempty"`
	Content       []ToolContent   `json:"content,omitempty"`
}

// ToolContent is one piece of a tool's result.
type ToolContent struct {
	Type    string `json:"type"` // content
	Content struct {
		Type string `json:"type"` // text
		Text string `json:"text"`
	} `json:"content"`
}

// TextContent is text as the content of a tool's result.
func TextContent(text string) []ToolContent {
	c := ToolContent{Type: "content"}
	c.Content.Type, c.Content.Text = "text", text
	return []ToolContent{c}
}
