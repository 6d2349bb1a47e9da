package codex

import (
	"context"
	"encoding/json"
	"net/http"
)

// notification has the fields of all notifications that we look at.
type notification struct {
	Thread string          `json:"threadId"`
	TurnID string          `json:"turnId"`
	Turn   turnResult      `json:"turn"`
	Item   json.RawMessage `json:"item"`

	ItemID string `json:"itemId"` // of a delta
	Delta  string `json:"delta"`
	Index  int    `json:"summaryIndex"`

	Plan []struct {
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"plan"`
	Usage struct {
		Last struct {
			Total int64 `json:"totalTokens"`
		} `json:"last"`
		Window int64 `json:"modelContextWindow"`
	} `json:"tokenUsage"`

	// Of what is told to people; error is an object with a turn's error and a string
	// with a server's.
	Error     json.RawMessage `json:"error"`
	WillRetry bool            `json:"willRetry"`
	Message   string          `json:"message"`
	Summary   string          `json:"summary"`
	Name      string          `json:"name"`
	Status    json.RawMessage `json:"status"`
	From      string          `json:"fromModel"`
	To        string          `json:"toModel"`
}

// notified implements peer. What it does not know it leaves alone.
func (d *driver) notified(ctx context.Context, method string, params json.RawMessage) {
	var n notification
	if err := json.Unmarshal(params, &n); err != nil {
		d.host.Log.Warn("codex: notification", "method", method, "err", err)
		return
	}
	d.mu.Lock()
	t, thread := d.turn, d.thread
	d.mu.Unlock()
	switch method {
	case "mcpServer/startupStatus/updated":
		d.serverStatus(ctx, n)
		return
	case "warning", "guardianWarning":
		d.notice(ctx, "codex: "+n.Message)
		return
	case "configWarning", "deprecationNotice":
		d.host.Log.Warn("codex: configuration", "warning", oneLine(n.Summary))
		return
	}
	if n.Thread != thread {
		return // an agent that ours has begun
	}
	switch method {
	case "item/started", "item/completed":
		// Also of commands that a turn has left running.
		d.item(ctx, d.ours(t, n.TurnID), n.Item, method == "item/completed")
		return
	case "turn/started":
		if t != nil {
			t.begun(n.Turn.ID)
		}
		return
	}
	if t != nil {
		d.inTurn(ctx, t, method, n)
	}
}

// ours is the turn that is going on, if it has that id.
func (d *driver) ours(t *turn, id string) *turn {
	if t == nil || t.id() != id {
		return nil
	}
	return t
}

// inTurn is for notifications of a turn.
func (d *driver) inTurn(ctx context.Context, t *turn, method string, n notification) {
	switch method {
	case "turn/completed":
		t.ended(n.Turn)
	case "error":
		d.turnError(ctx, t, n)
	case "turn/plan/updated":
		d.plan(ctx, n)
	case "thread/tokenUsage/updated":
		d.put(d.host.Update(ctx, map[string]any{
			"sessionUpdate": "usage_update", "used": n.Usage.Last.Total, "size": n.Usage.Window,
		}))
	case "model/rerouted":
		d.notice(ctx, "codex: the model "+n.To+" answers in place of "+n.From)
	case "item/agentMessage/delta", "item/plan/delta":
		if d.ours(t, n.TurnID) != nil {
			d.text(ctx, messageChunk, t.said.add(n.ItemID, n.Delta))
		}
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		d.thought(ctx, n.ItemID, n.Delta)
	case "item/reasoning/summaryPartAdded":
		if n.Index > 0 {
			d.thought(ctx, n.ItemID, "\n\n")
		}
	}
}

func (d *driver) serverStatus(ctx context.Context, n notification) {
	var state serverState
	_ = json.Unmarshal(n.Status, &state.status) // another form is no state that we know
	_ = json.Unmarshal(n.Error, &state.err)
	if state.failed() {
		state.err = serverError(state.err)
	}
	if d.servers.set(n.Name, state) {
		d.notice(ctx, "the MCP server "+n.Name+" is not connected: "+state.err)
	}
}

// turnError is told of an error while a turn is going on. Only turn/completed says that
// it has failed. But Codex tries again also where the gateway lets it in no more, which
// is of no use.
func (d *driver) turnError(ctx context.Context, t *turn, n notification) {
	var e turnError
	if json.Unmarshal(n.Error, &e) != nil || !n.WillRetry {
		return
	}
	status := e.status()
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		d.tell(ctx, "warn", "codex: "+e.text())
		return
	}
	why := e.Details
	if why == "" {
		why = e.Message
	}
	d.mu.Lock()
	c := d.conn
	d.mu.Unlock()
	if !t.deny(oneLine(why)) || c == nil {
		return
	}
	c.running.Go(func() { d.interrupt(c.ctx, c, n.Thread, n.TurnID) })
}

// interrupt asks Codex to end a turn.
func (d *driver) interrupt(ctx context.Context, c *conn, thread, id string) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	err := c.call(ctx, "turn/interrupt", map[string]string{"threadId": thread, "turnId": id}, nil)
	if err != nil {
		d.host.Log.Info("codex: interrupt", "err", err) // also when the turn has just ended
	}
}

func (d *driver) plan(ctx context.Context, n notification) {
	entries := make([]map[string]string, 0, len(n.Plan))
	for _, p := range n.Plan {
		status := p.Status
		if status == "inProgress" {
			status = "in_progress"
		}
		entries = append(entries, map[string]string{"content": p.Step, "priority": "medium", "status": status})
	}
	d.put(d.host.Update(ctx, map[string]any{"sessionUpdate": "plan", "entries": entries}))
}

// The kinds of text, in ACP's words.
const (
	messageChunk = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
)

// maxText bounds one piece of text in the journal, so that it fits whatever JSON makes
// of it.
const maxText = 64 << 10

// text tells a piece of text.
func (d *driver) text(ctx context.Context, kind, text string) {
	for text != "" {
		piece := clip(text, maxText)
		text = text[len(piece):]
		d.put(d.host.Text(ctx, kind, piece))
	}
}

// thought tells a piece of the agent's thoughts, and remembers that it came in pieces.
func (d *driver) thought(ctx context.Context, item, text string) {
	d.mu.Lock()
	d.thinking = item
	d.mu.Unlock()
	d.text(ctx, thoughtChunk, text)
}

// clip is the longest beginning of text that has at most limit bytes and no half
// character at its end.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit]
}
