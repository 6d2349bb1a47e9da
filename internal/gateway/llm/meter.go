package llm

import (
	"bytes"
	"encoding/json"
)

// usage is what an answer says it used, in the words of all dialects.
type usage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheWrite    int64 `json:"cache_creation_input_tokens"`
	CacheCreation struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	InputDetails  inputDetails  `json:"input_tokens_details"`
	OutputDetails outputDetails `json:"output_tokens_details"`

	Prompt            int64         `json:"prompt_tokens"`
	Completion        int64         `json:"completion_tokens"`
	PromptDetails     inputDetails  `json:"prompt_tokens_details"`
	CompletionDetails outputDetails `json:"completion_tokens_details"`
}

type inputDetails struct {
	Cached  int64 `json:"cached_tokens"`
	Written int64 `json:"cache_write_tokens"`
}

type outputDetails struct {
	Reasoning int64 `json:"reasoning_tokens"`
	Thinking  int64 `json:"thinking_tokens"`
}

// counts are the tokens of one request. The kinds do not overlap, but Thought is part
// of Output and WriteHour of CacheWrite.
type counts struct {
	Input, Output, CacheRead, CacheWrite, WriteHour, Thought int64
}

// of brings the words of a dialect to ours: Anthropic counts what came from the cache
// beside the input, OpenAI within it.
func (u usage) of(d dialect) counts {
	c := counts{Input: u.Input, Output: u.Output}
	if d == anthropic {
		c.CacheRead, c.CacheWrite, c.WriteHour = u.CacheRead, u.CacheWrite, u.CacheCreation.Hour
		c.Thought = u.OutputDetails.Thinking
	} else {
		in, out := u.InputDetails, u.OutputDetails
		if u.Prompt > 0 || u.Completion > 0 {
			c.Input, c.Output, in, out = u.Prompt, u.Completion, u.PromptDetails, u.CompletionDetails
		}
		c.CacheRead = min(in.Cached, c.Input)
		c.CacheWrite = min(in.Written, c.Input-c.CacheRead)
		c.Input -= c.CacheRead + c.CacheWrite
		c.Thought = out.Reasoning
	}
	for _, n := range []*int64{&c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.WriteHour, &c.Thought} {
		*n = max(*n, 0)
	}
	c.WriteHour = min(c.WriteHour, c.CacheWrite)
	return c
}

// meter reads what an answer used while it passes, a stream of events or one JSON text.
type meter struct {
	dialect dialect
	events  bool
	text    scan

	line  lineState
	kind  kind // of the current event
	used  usage
	model string

	seen  bool  // some counts were said
	fresh bool  // in the current event
	final bool  // the last ones were said
	over  bool  // nothing more will be said
	delta int64 // bytes of text in the answer, for an estimate
}

// kind is what the type of an event means to a meter.
type kind int

const (
	otherEvent  kind = iota
	lastCounts       // the last counts are in it
	lastEvent        // nothing comes after it
	wholeAnswer      // both
)

// kindOf takes a JSON string.
func kindOf(raw []byte) kind {
	switch string(raw) {
	case `"message_delta"`:
		return lastCounts
	case `"message_stop"`, `"error"`:
		return lastEvent
	case `"response.completed"`, `"response.incomplete"`, `"response.failed"`:
		return wholeAnswer
	}
	return otherEvent
}

// lineState is where in a line of an event stream the meter is.
type lineState struct {
	field   [5]byte // its first bytes, as far as they have come
	n       int
	value   bool // in the value of a data field
	first   bool // at the start of that value
	skipped bool // in another field
}

func newMeter(d dialect, events bool) *meter {
	m := &meter{dialect: d, events: events}
	m.text.found = m.member
	return m
}

// write takes the next bytes of the answer. It keeps none of them.
func (m *meter) write(p []byte) {
	if !m.events {
		m.text.write(p)
		if m.text.done {
			m.final, m.over = m.seen, true
		}
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			m.piece(p)
			return
		}
		m.piece(p[:end])
		m.endLine()
		p = p[end+1:]
	}
}

// piece takes bytes of one line.
func (m *meter) piece(p []byte) {
	l := &m.line
	for len(p) > 0 && !l.value && !l.skipped {
		if l.n == 0 && p[0] == '\r' {
			p = p[1:]
			continue
		}
		l.field[l.n] = p[0]
		l.n++
		p = p[1:]
		if l.n == len(l.field) {
			l.value = string(l.field[:]) == "data:"
			l.first, l.skipped = l.value, !l.value
		}
	}
	if !l.value || len(p) == 0 {
		return
	}
	if l.first {
		if p = bytes.TrimLeft(p, " "); len(p) == 0 {
			return
		}
		l.first = false
		if p[0] == '[' { // [DONE]
			m.over = true
			l.value, l.skipped = false, true
			return
		}
	}
	m.text.write(p)
}

// end takes the end of an answer that was not cut.
func (m *meter) end() {
	if m.events {
		m.endLine()
		m.endEvent()
	}
}

func (m *meter) endLine() {
	blank := m.line.n == 0 && !m.line.value && !m.line.skipped
	m.line = lineState{}
	if blank {
		m.endEvent()
	}
}

func (m *meter) endEvent() {
	switch m.kind {
	case lastCounts:
		m.final = m.final || m.fresh
	case lastEvent:
		m.over = true
	case wholeAnswer:
		m.final, m.over = m.fresh, true
	case otherEvent:
	}
	m.kind, m.fresh = otherEvent, false
	m.text.reset()
}

// member takes one of the values that the scan has found.
func (m *meter) member(parent, key string, raw []byte, size int) {
	switch key {
	case "type":
		if m.events {
			m.kind = kindOf(raw)
		}
	case "model":
		if n := len(raw) - 1; n > 1 && string(raw[1:n]) == m.model {
			return // as nearly always
		}
		if name := text(raw); name != "" {
			m.model = name
		}
	case "usage":
		m.use(parent, raw)
	case "delta", "choices":
		m.delta += int64(max(size-deltaFrame(m.dialect, key), 1))
	}
}

// deltaFrame is roughly how many bytes of a delta are not text.
func deltaFrame(d dialect, key string) int {
	switch {
	case key == "choices":
		return 70
	case d == anthropic:
		return 32
	}
	return 2
}

// use takes counts over those that came before: the last ones stand. A later count of
// no input says nothing: some endpoints leave it out of all but the first event.
func (m *meter) use(parent string, raw []byte) {
	before := m.used
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	if json.Unmarshal(raw, &m.used) != nil {
		m.used = before
		return
	}
	m.seen, m.fresh = true, true
	if m.used.Input == 0 && m.used.Prompt == 0 {
		m.used.Input = before.Input
	}
	if m.used.CacheRead == 0 && m.used.CacheWrite == 0 {
		m.used.CacheRead, m.used.CacheWrite = before.CacheRead, before.CacheWrite
	}
	if m.dialect == openai && parent == "" {
		m.final = true // the usage of a stream of Chat Completions comes once
	}
}

// total returns what the answer used. What it has not said is estimated: the input from
// the bytes of text that were sent, the output from those that came.
func (m *meter) total(sent int64) (c counts, estimated bool) {
	c = m.used.of(m.dialect)
	if m.final {
		return c, false
	}
	if !m.seen {
		c.Input = tokensOf(sent)
	}
	c.Output = max(c.Output, tokensOf(m.delta))
	return c, true
}

// tokensOf estimates the tokens of a text.
func tokensOf(n int64) int64 { return (n + 3) / 4 }

// text returns a JSON string, empty if it is none.
func text(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
