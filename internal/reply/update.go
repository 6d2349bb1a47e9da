package reply

import (
	"bytes"
	"encoding/json"

	"github.com/Insights/insightscli/internal/task"
)

// update is as much of an ACP session/update as matters here.
type update struct {
	Update struct {
		SessionUpdate string          `json:"sessionUpdate"`
		Content       json.RawMessage `json:"content"`
		Cost          json.RawMessage `json:"cost"`
	} `json:"update"`
}

// update takes one ACP update: words are gathered, whatever else the agent does ends the
// message. What comes beside its work does neither.
func (t *Turns) update(ev task.Event) {
	var u update
	if json.Unmarshal(ev.Params, &u) != nil {
		return
	}
	switch u.Update.SessionUpdate {
	case "agent_message", "agent_message_chunk":
		t.sign(ev, false)
		t.words(blockText(u.Update.Content))
	case "agent_thought", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		t.sign(ev, false)
		t.newStarts = true
	case "usage_update":
		t.sign(ev, bytes.Equal(bytes.TrimSpace(u.Update.Cost), []byte("null")))
	case "user_message", "user_message_chunk":
		t.newStarts = true // words put in between: what follows answers them
	}
}

// words adds a piece to the message, up to its bound.
func (t *Turns) words(text string) {
	if text == "" {
		return
	}
	if t.newStarts {
		t.text.Reset()
		t.newStarts = false
	}
	t.text.WriteString(text[:min(len(text), maxText+1-t.text.Len())])
}

// blockText is the text of one content block; other blocks have none. Some agents send a
// list of blocks, or the bare text.
func blockText(raw json.RawMessage) string {
	type block struct{ Type, Text string }
	var one block
	if json.Unmarshal(raw, &one) == nil {
		if one.Type == "text" {
			return one.Text
		}
		return ""
	}
	var list []block
	if json.Unmarshal(raw, &list) == nil {
		var text string
		for _, b := range list {
			if b.Type == "text" {
				text += b.Text
			}
		}
		return text
	}
	var bare string
	_ = json.Unmarshal(raw, &bare) // anything else has no text
	return bare
}
