package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// Chunks of text and snapshots of running tools come faster than anybody reads, and every
// event is kept for good. Text is therefore joined: what comes within textTime of the
// first piece, and of the same kind, is one event, unless another event or textSize ends
// it. Of a running tool's snapshots one is written every toolTime, which has everything
// that the ones before had. Nothing is held back at the end of a turn.
//
// Held text is bounded by textSize and one piece, held snapshots by toolBytes; whoever
// adds to them waits for room in the journal first, as for an event. What may be the
// beginning of a secret is held back beyond textTime, see [Host.tellText].
const (
	textTime = 200 * time.Millisecond
	textSize = 16 << 10
	// keptTime and textKept bound what is kept because it may be the beginning of a
	// secret: the words of a model come faster, and people see the end of a sentence.
	keptTime = 3 * time.Second
	textKept = 64 << 10
	// textMost is the most text of one event: escaped it still fits in a frame.
	textMost = wire.MaxFrame / 8

	toolTime  = 2 * time.Second
	toolBytes = 4 << 20
	toolMost  = 256 // tools of which something is remembered
)

// held is what a [Host] holds back.
type held struct {
	mu    sync.Mutex // guards the rest, and is held while an event is written
	text  *chunk
	timer *time.Timer // of text
	kept  bool        // text is what was kept of what was told
	tools map[string]*running
	bytes int // of all snapshots
}

// chunk is a piece of text, or several of the same kind.
type chunk struct {
	kind    string
	rest    fields // of the update
	content fields // of its content, but the text
	key     string // what pieces that are joined have in common
	text    []byte
}

// fields are those of a JSON object.
type fields map[string]json.RawMessage

// update is what is looked at of an ACP session update.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	Tool    string          `json:"toolCallId"`
	Status  string          `json:"status"`
	Content json.RawMessage `json:"content"`
}

func plainChunk(kind, text string) *chunk {
	return &chunk{kind: kind, key: kind + `{}{"type":"text"}`, content: fields{"type": json.RawMessage(`"text"`)}, text: []byte(text)}
}

// asChunk returns the piece of text that an update is, or nil. b is the whole of it.
func (u *update) asChunk(b []byte) *chunk {
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
	default:
		return nil
	}
	var content struct{ Type, Text string }
	c := &chunk{kind: u.Kind}
	if json.Unmarshal(u.Content, &content) != nil || content.Type != "text" ||
		json.Unmarshal(b, &c.rest) != nil || json.Unmarshal(u.Content, &c.content) != nil {
		return nil
	}
	delete(c.rest, "sessionUpdate")
	delete(c.rest, "content")
	delete(c.content, "text")
	rest, _ := json.Marshal(c.rest) // of JSON that was just read
	others, _ := json.Marshal(c.content)
	c.key, c.text = u.Kind+string(rest)+string(others), []byte(content.Text)
	return c
}

// frame is the event of the chunk with that much of its text.
func (c *chunk) frame(text []byte) wire.Frame {
	content := map[string]any{"text": string(text)}
	for k, v := range c.content {
		content[k] = v
	}
	all := map[string]any{"sessionUpdate": c.kind, "content": content}
	for k, v := range c.rest {
		all[k] = v
	}
	b, _ := json.Marshal(map[string]any{"update": all}) // strings, and JSON that was read before
	return wire.Frame{Type: wire.FrameEvent, Method: wire.EventUpdate, Data: b}
}

// say adds a piece of text. One without text is nothing: agents that resume choke on it.
func (h *Host) say(ctx context.Context, c *chunk) error {
	if len(c.text) == 0 {
		return nil
	}
	if size := len(c.frame(nil).Data); size > textMost {
		return fmt.Errorf("event %s: %d bytes beside the text are more than a frame holds", wire.EventUpdate, size)
	}
	if _, err := h.journal.room(ctx); err != nil {
		return err
	}
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	if h.held.text != nil && h.held.text.key == c.key {
		h.held.text.text = append(h.held.text.text, c.text...)
	} else {
		h.flushText()
		h.held.text = c
	}
	if h.held.timer == nil || h.held.kept {
		h.arm(textTime, false)
	}
	if len(h.held.text.text) >= textSize {
		h.tellText()
	}
	return nil
}

// arm sets the time when the text is told; kept says that all of it has been waited for
// once. The lock is held.
func (h *Host) arm(after time.Duration, kept bool) {
	if h.held.timer != nil {
		h.held.timer.Stop()
	}
	h.held.timer, h.held.kept = time.AfterFunc(after, h.textDue), kept
}

func (h *Host) textDue() {
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	if h.held.kept {
		h.flushText()
		return
	}
	h.tellText()
}

// tellText writes the text that is held back, but for an end that what follows may make
// a secret: cut in two, neither half of it would be known by the masks of those who read
// the events. That end waits for more text, for the event that ends the text, or for
// keptTime. The lock is held.
func (h *Host) tellText() {
	c := h.held.text
	if c == nil {
		return
	}
	n := h.settled(c.text)
	if len(c.text)-n > textKept {
		n = len(c.text)
	}
	rest := *c
	rest.text = bytes.Clone(c.text[n:])
	c.text = c.text[:n]
	h.flushText()
	if len(rest.text) > 0 {
		h.held.text = &rest
		h.arm(keptTime, true)
	}
}

// settled is how much of a text can be an event of its own.
func (h *Host) settled(text []byte) int {
	if h.mask == nil {
		return len(text)
	}
	return h.mask().Settled(text)
}

// flushText writes the text that is held back. The lock is held.
func (h *Host) flushText() {
	c := h.held.text
	if c == nil {
		return
	}
	if h.held.timer != nil {
		h.held.timer.Stop()
	}
	h.held.text, h.held.timer, h.held.kept = nil, nil, false
	for len(c.text) > textMost {
		n := h.settled(c.text[:textMost])
		if n == 0 {
			n = wholeRunes(c.text[:textMost])
		}
		h.journal.append(c.frame(c.text[:n]))
		c.text = c.text[n:]
	}
	if len(c.text) > 0 {
		h.journal.append(c.frame(c.text))
	}
}

// put writes a frame, after the words that came before it.
func (h *Host) put(f wire.Frame) {
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	h.flushText()
	h.journal.append(f)
}

// flush writes everything that is held back and forgets the tools.
func (h *Host) flush() {
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	h.flushText()
	h.flushTools()
}
