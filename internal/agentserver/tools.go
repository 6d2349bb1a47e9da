package agentserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// running is a tool of the agent that has not ended.
type running struct {
	written time.Time // when its last snapshot was
	held    fields    // what has come since, nil if nothing has
	size    int       // of held
	timer   *time.Timer
}

// isSnapshot reports whether the update tells of a tool that goes on. One that does not
// say so changes something else than the status.
func (u *update) isSnapshot() bool {
	return u.Kind == "tool_call_update" && u.Tool != "" && (u.Status == "" || u.Status == "in_progress")
}

// snapshot writes an update of a tool that goes on, or keeps it for the next one.
func (h *Host) snapshot(ctx context.Context, u *update, b []byte) error {
	if err := h.admit(ctx, b); err != nil {
		return err
	}
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	t := h.held.tools[u.Tool]
	if t == nil {
		t = h.remember(u.Tool)
	}
	h.hold(t, b)
	since := time.Since(t.written)
	switch {
	case since >= toolTime, h.held.bytes > toolBytes:
		h.release(t)
	case t.timer == nil:
		t.timer = time.AfterFunc(toolTime-since, func() {
			h.held.mu.Lock()
			defer h.held.mu.Unlock()
			h.release(t)
		})
	}
	return nil
}

// toolEvent writes an update that is neither text nor a snapshot. If it is that of a
// tool it brings what was held back of the tool.
func (h *Host) toolEvent(ctx context.Context, u *update, b []byte) error {
	if err := h.admit(ctx, b); err != nil {
		return err
	}
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	if t := h.held.tools[u.Tool]; t != nil && u.Tool != "" {
		h.hold(t, b)
		h.release(t)
		if u.Status != "pending" && u.Status != "" {
			delete(h.held.tools, u.Tool)
		}
		return nil
	}
	h.flushText()
	h.journal.append(updateFrame(b))
	return nil
}

// admit waits for room for an update.
func (h *Host) admit(ctx context.Context, b []byte) error {
	if f := updateFrame(b); wire.FrameSize(&f) > wire.MaxFrame {
		return fmt.Errorf("event %s: %d bytes are more than a frame holds", wire.EventUpdate, len(b))
	}
	_, err := h.journal.room(ctx)
	return err
}

// updateFrame is the event of an update.
func updateFrame(b []byte) wire.Frame {
	data := append(append([]byte(`{"update":`), b...), '}')
	return wire.Frame{Type: wire.FrameEvent, Method: wire.EventUpdate, Data: data}
}

// remember begins to count the time of a tool.
func (h *Host) remember(id string) *running {
	if len(h.held.tools) >= toolMost {
		h.flushTools()
	}
	if h.held.tools == nil {
		h.held.tools = map[string]*running{}
	}
	t := &running{}
	h.held.tools[id] = t
	return t
}

// hold adds what b says to what is held back of the tool. An update has what has changed
// only, so that the later of two values is the one that counts.
func (h *Host) hold(t *running, b []byte) {
	var news fields
	if json.Unmarshal(b, &news) != nil {
		return // it was an object before
	}
	all := maps.Clone(t.held)
	if all == nil {
		all = fields{}
	}
	maps.Copy(all, news)
	if t.held != nil && all.size() > wire.MaxFrame/2 {
		h.release(t)
		all = news
	}
	h.held.bytes += all.size() - t.size
	t.held, t.size = all, all.size()
}

func (f fields) size() int {
	n := 0
	for k, v := range f {
		n += len(k) + len(v)
	}
	return n
}

// release writes what is held back of a tool.
func (h *Host) release(t *running) {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if t.held == nil {
		return
	}
	b, _ := json.Marshal(t.held) // of JSON that was read before
	h.flushText()
	h.journal.append(updateFrame(b))
	h.held.bytes -= t.size
	t.held, t.size, t.written = nil, 0, time.Now()
}

// flushTools writes what is held back of all tools and forgets them.
func (h *Host) flushTools() {
	for _, id := range slices.Sorted(maps.Keys(h.held.tools)) {
		h.release(h.held.tools[id])
	}
	h.held.tools = nil
}

// cutTo is how much is kept of a part of an update that is too long for a frame.
const cutTo = 64 << 10

// fit cuts the long parts of a tool's update so that it fits in a frame, and returns
// other updates as they are.
func (u *update) fit(b []byte) []byte {
	var all fields
	if f := updateFrame(b); wire.FrameSize(&f) <= wire.MaxFrame || u.Tool == "" || json.Unmarshal(b, &all) != nil {
		return b
	}
	for _, name := range []string{"rawInput", "rawOutput"} {
		if raw := all[name]; len(raw) > cutTo {
			all[name], _ = json.Marshal(shortened(string(raw)))
		}
	}
	if raw := all["content"]; len(raw) > cutTo {
		all["content"], _ = json.Marshal(TextContent(shortened(contentWords(raw))))
	}
	short, _ := json.Marshal(all)
	return short
}

// contentWords is the text of a tool's content, or the whole of it where it has another
// shape.
func contentWords(raw json.RawMessage) string {
	var pieces []ToolContent
	if json.Unmarshal(raw, &pieces) != nil {
		return string(raw)
	}
	text := ""
	for _, p := range pieces {
		text += p.Content.Text
	}
	if text == "" {
		return string(raw)
	}
	return text
}

// shortened is the beginning of a text, and how long it was.
func shortened(text string) string {
	if len(text) <= cutTo {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:wholeRunes([]byte(text[:cutTo]))], len(text))
}
