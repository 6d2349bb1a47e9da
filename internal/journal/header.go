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
	at                    time.Time
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
	stamp := p.until('"')
	if p.optional(`,"event_id":"`) {
		h.eventID = p.number('"')
	}
	if p.optional(`,"first_event_id":"`) {
		h.firstEventID = p.number('"')
	}
	p.literal(`,"notification":{"jsonrpc":"2.0","method":"`)
	h.method = p.until('"')
	p.literal(`,"params":`)
	if p.bad || bytes.IndexByte(h.method, '\\') >= 0 {
		return header{}, false
	}
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", string(stamp))
	h.at, h.params = at, len(line)-len(p.rest)
	return h, err == nil
}

// event completes a header to the event of the whole line.
func (h header) event(line []byte) (task.Event, bool) {
	params, ok := bytes.CutSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte("}}"))
	if !ok || len(params) < h.params+2 || line[h.params] != '{' || params[len(params)-1] != '}' {
		return task.Event{}, false
	}
	method := string(h.method)
	return task.Event{
		Seq: h.seq, At: h.at, Kind: task.KindOf(method), Method: method, Params: params[h.params:],
		EventID: h.eventID, FirstEventID: h.firstEventID,
	}, true
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
