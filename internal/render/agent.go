package render

import (
	"encoding/json"
	"fmt"

	"github.com/Insights/insightscli/internal/task"
)

// update is as much of an ACP session/update as is shown.
type update struct {
	Update struct {
		SessionUpdate string          `json:"sessionUpdate"`
		Content       json.RawMessage `json:"content"`
		Title         string          `json:"title"`
		Status        string          `json:"status"`
	} `json:"update"`
}

// agent writes what an agent says to the output stream and what it does to the
// error stream. Thoughts, plans and the progress of a tool are in the log only.
func (t *Text) agent(ev task.Event) {
	var u update
	if json.Unmarshal(ev.Params, &u) != nil {
		return
	}
	switch u.Update.SessionUpdate {
	case "agent_message", "agent_message_chunk":
		if text := blockText(u.Update.Content); text != "" {
			t.data(task.Stdout, []byte(text))
		}
	case "tool_call":
		if !t.o.Quiet {
			t.line("* ", u.Update.Title)
		}
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

// permission is what an agent asks leave for.
func permission(params json.RawMessage) string {
	var p struct {
		ToolCall struct{ Title string } `json:"toolCall"`
	}
	if json.Unmarshal(params, &p) != nil || p.ToolCall.Title == "" {
		return string(params)
	}
	return p.ToolCall.Title
}

// denied names the connection that was refused, and by what.
func denied(params json.RawMessage) string {
	var d struct {
		Host string      `json:"host"`
		Port json.Number `json:"port"`
		Rule string      `json:"rule"`
	}
	if json.Unmarshal(params, &d) != nil || d.Host == "" {
		return string(params)
	}
	text := d.Host
	if d.Port != "" {
		text += ":" + d.Port.String()
	}
	if d.Rule != "" {
		text = fmt.Sprintf("%s (%s)", text, d.Rule)
	}
	return text
}
