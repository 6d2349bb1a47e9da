package journal

import (
	"bytes"
	"strconv"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// header is what a stored line tells before its parameters.
type header struct {
	seq                   uint64
	stamp                 []byte
	eventID, firstEventID uint64
	method                []byte
	params                int // where the parameters begin
}

// parseHeader reads the header of a line in exactly the form that
// [task.Event.AppendLine] writes, without looking at the parameters, which may be
// megabytes. Every other line is left to [task.ParseLine].
func parseHeader(line []byte) (h header, ok bool) {
	p := cursor{rest: line}
	p.literal(`{"type":"notification","v":1,"seq":`)
	h.seq = p.number(',')
	p.literal(`"timestamp":"`)
	h.stamp = p.until('"')
	if p.optional(`,"event_id":"`) {
		h.eventID = p.number('"')
	}
	if p.optional(`,"first_event_id":"`) {
		h.firstEventID = p.number('"')
	}
	p.literal(`,"notification":{"jsonrpc":"2.0","method":"`)
	h.method = p.until('"')
	p.literal(`,"params":`)
	if p.bad || bytes.IndexByte(h.method, '\\') >= 0 || !isStamp(h.stamp) {
		return header{}, false
	}
	h.params = len(line) - len(p.rest)
	return h, true
}

// payload is the parameters of the whole line; not ok, it is not in our own form.
func (h header) payload(line []byte) (params []byte, ok bool) {
	params, ok = bytes.CutSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte("}}"))
	if !ok || len(params) < h.params+2 || line[h.params] != '{' || params[len(params)-1] != '}' {
		return nil, false
	}
	return params[h.params:], true
}

// event completes a header to the event of the whole line.
func (h header) event(line []byte, known methods) (task.Event, bool) {
	params, ok := h.payload(line)
	if !ok {
		return task.Event{}, false
	}
	m := known.of(h.method)
	return task.Event{
		Seq: h.seq, At: moment6(h.stamp), Kind: m.kind, Method: m.name, Params: params,
		EventID: h.eventID, FirstEventID: h.firstEventID,
	}, true
}

// method is a JSON-RPC method and the kind of its events.
type method struct {
	name string
	kind task.Kind
}

// methods remembers the methods of a log, which are few and stand in every line of it.
type methods map[string]method

// maxMethods bounds what a log can make a reader remember.
const maxMethods = 256

func (known methods) of(name []byte) method {
	if m, ok := known[string(name)]; ok {
		return m
	}
	m := method{name: string(name), kind: task.KindOf(string(name))}
	if known != nil && len(known) < maxMethods {
		known[m.name] = m
	}
	return m
}

// layout is the form of a time in our lines, with a digit for every letter.
const layout = "dddd-dd-ddTdd:dd:dd.ddddddZ"

// isStamp reports whether b is a time in the form of our lines. Of numbers that are no
// time, such as a 13th month, [moment6] makes the one that they come to.
func isStamp(b []byte) bool {
	if len(b) != len(layout) {
		return false
	}
	for i := range len(layout) {
		if digit := b[i] >= '0' && b[i] <= '9'; layout[i] == 'd' && !digit || layout[i] != 'd' && b[i] != layout[i] {
			return false
		}
	}
	return true
}

// moment6 reads a time that is in the form of our lines.
func moment6(b []byte) time.Time {
	n := func(from, to int) (v int) {
		for _, c := range b[from:to] {
			v = v*10 + int(c-'0')
		}
		return v
	}
	return time.Date(n(0, 4), time.Month(n(5, 7)), n(8, 10), n(11, 13), n(14, 16), n(17, 19), n(20, 26)*1000, time.UTC)
}

// cursor reads a line from left to right; bad once something was not as expected.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) literal(s string) {
	if !c.optional(s) {
		c.bad = true
	}
}

func (c *cursor) optional(s string) bool {
	if c.bad || len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

// until reads up to the byte end, which it skips.
func (c *cursor) until(end byte) []byte {
	i := bytes.IndexByte(c.rest, end)
	if i < 0 {
		c.bad = true
		return nil
	}
	s := c.rest[:i]
	c.rest = c.rest[i+1:]
	return s
}

func (c *cursor) number(end byte) uint64 {
	n, err := strconv.ParseUint(string(c.until(end)), 10, 64)
	if err != nil {
		c.bad = true
	}
	return n
}
