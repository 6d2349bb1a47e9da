package tui

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// scanSize is how much of a log is held while it is read. A longer line is known by its
	// beginning.
	scanSize = 1 << 20
	// scanStep is how much is read before the screen hears of it.
	scanStep = 8 << 20
	// maxGroup and maxGroupBytes bound what is put together to one item.
	maxGroup      = 64
	maxGroupBytes = 64 << 10
	// maxOpen bounds how many tools are remembered.
	maxOpen = 16 << 10
	// maxTold bounds an event that the summary is told of, and tellAtMost how many of a
	// step of the scanner: of usage and plans the last one counts.
	maxTold    = 256 << 10
	tellAtMost = 2000
	// maxGap is how many numbers may be missing without a reason; damaged lines are one, of
	// which none is shorter than minLine.
	maxGap  = 16
	minLine = 64
)

// batch is what one step of the scanner found.
type batch struct {
	metas   []meta
	links   []link
	told    []task.Event // what the summary wants
	end     int64        // where the read part of the file ends
	damaged int          // lines that are no events
	more    bool         // the file goes on
}

// scanner reads a log from left to right and remembers where everything is.
type scanner struct {
	log  io.ReaderAt
	pos  int64  // of the first byte that is not read
	seq  uint32 // of the last event
	lost int64  // bytes of damaged lines since then
	buf  []byte
	from int64 // of the first byte of buf

	group      kind // what is being put together; missing is nothing
	groupHead  uint32
	groupLast  uint32
	groupCount int
	groupBytes int64

	tools map[string]link // id → the call and its last report
	asked map[string]link // id → the request and its last answer

	out  batch
	told []toldLine
}

// toldLine is an event that the summary wants, before it is decoded.
type toldLine struct {
	kind   kind
	method string
	line   []byte
}

func newScanner(log io.ReaderAt) *scanner {
	return &scanner{log: log, tools: map[string]link{}, asked: map[string]link{}}
}

// step reads on, at most scanStep bytes. A torn last line stays for the next time.
func (s *scanner) step() (batch, error) {
	s.out, s.told = batch{}, s.told[:0]
	if s.buf == nil {
		s.buf = make([]byte, 0, scanSize)
	}
	begin := s.pos
	for s.pos-begin < scanStep {
		n, err := s.fill()
		if err != nil && !errors.Is(err, io.EOF) {
			return s.result(), err
		}
		lines := s.lines()
		if n == 0 && lines == 0 {
			s.buf = s.buf[:0] // a torn line may be written anew
			s.from = s.pos
			return s.result(), nil
		}
	}
	s.out.more = true
	return s.result(), nil
}

func (s *scanner) result() batch {
	s.out.end = s.pos
	for _, t := range s.told {
		if ev, err := task.ParseLine(t.line); err == nil {
			s.out.told = append(s.out.told, ev)
		}
	}
	return s.out
}

// fill reads more behind what is held.
func (s *scanner) fill() (int, error) {
	if len(s.buf) == 0 {
		s.from = s.pos
	}
	n, err := s.log.ReadAt(s.buf[len(s.buf):cap(s.buf)], s.from+int64(len(s.buf)))
	s.buf = s.buf[:len(s.buf)+n]
	return n, err
}

// lines takes the whole lines that are held, and reports how many there were.
func (s *scanner) lines() int {
	rest, n := s.buf, 0
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		s.line(rest[:i], int64(i)+1)
		rest, n = rest[i+1:], n+1
	}
	if len(rest) == cap(s.buf) { // a line that is longer than all that is held
		if size, ok := s.longLine(); ok {
			s.line(rest, size)
			rest, n = nil, n+1
		}
	}
	s.buf = s.buf[:copy(s.buf[:cap(s.buf)], rest)]
	s.from = s.pos
	return n
}

// longLine finds the end of the line at pos without holding it.
func (s *scanner) longLine() (size int64, ok bool) {
	b := make([]byte, scanSize)
	for at := s.pos + int64(cap(s.buf)); ; {
		n, err := s.log.ReadAt(b, at)
		if i := bytes.IndexByte(b[:n], '\n'); i >= 0 {
			return at + int64(i) + 1 - s.pos, true
		}
		if at += int64(n); err != nil || n == 0 {
			return 0, false
		}
	}
}

// line takes one line of that size, of which b is the beginning.
func (s *scanner) line(b []byte, size int64) {
	at := s.pos
	s.pos += size
	seq, method, params, ok := parseHead(b)
	if !ok || seq <= uint64(s.seq) || seq > uint64(s.seq)+maxGap+uint64(s.lost/minLine) {
		s.out.damaged++
		s.lost += size
		return
	}
	s.lost = 0
	for uint64(s.seq)+1 < seq { // of damaged lines
		s.seq++
		s.out.metas = append(s.out.metas, newMeta(at, s.seq))
	}
	s.seq++
	m := newMeta(at, s.seq)
	c := classify(method, params)
	m.kind = c.kind
	if c.hidden {
		m.flags |= isHidden
	}
	if c.bad {
		m.flags |= isBad
	}
	m.head = s.headOf(c, s.seq, size)
	if m.head == s.seq && m.kind == toolUpdate {
		m.kind = tool // its call is not known
	}
	s.out.metas = append(s.out.metas, m)
	if c.told && size <= maxTold {
		s.tell(c.kind, method, b)
	}
}

// headOf finds the item that an event belongs to.
func (s *scanner) headOf(c class, seq uint32, size int64) uint32 {
	switch c.kind {
	case tool:
		s.open(s.tools, c.id, seq)
	case toolUpdate:
		return s.belongs(s.tools, c, seq)
	case permission:
		s.open(s.asked, c.id, seq)
	case answered:
		return s.belongs(s.asked, c, seq)
	case usage, quiet: // comes between pieces of a text without ending it
		return seq
	}
	joins := c.chunk && c.kind == s.group && s.groupCount < maxGroup && s.groupBytes+size <= maxGroupBytes
	if !joins {
		s.group, s.groupHead, s.groupLast, s.groupCount, s.groupBytes = missing, seq, seq, 1, size
		if c.chunk {
			s.group = c.kind
		}
		return seq
	}
	s.out.links = append(s.out.links, link{s.groupLast, seq})
	s.groupLast, s.groupCount, s.groupBytes = seq, s.groupCount+1, s.groupBytes+size
	return s.groupHead
}

// open remembers what later events may belong to.
func (s *scanner) open(m map[string]link, id []byte, seq uint32) {
	if len(m) >= maxOpen {
		clear(m) // of so many that are open the oldest will not be heard of again
	}
	if len(id) > 0 {
		m[string(id)] = link{seq, seq}
	}
}

// belongs hands an event to what it belongs to. One that belongs to nothing known stands
// for itself.
func (s *scanner) belongs(m map[string]link, c class, seq uint32) uint32 {
	l, ok := m[string(c.id)]
	if !ok {
		if c.kind == toolUpdate {
			s.open(m, c.id, seq)
		}
		return seq
	}
	s.out.links = append(s.out.links, link{l.to, seq})
	m[string(c.id)] = link{l.from, seq}
	return l.from
}

// tell keeps an event for the summary.
func (s *scanner) tell(k kind, method string, line []byte) {
	if k == usage || k == plan { // the last one counts
		for i := len(s.told) - 1; i >= 0; i-- {
			if t := &s.told[i]; t.kind == k && t.method == method {
				t.line = append(t.line[:0], line...)
				return
			}
		}
	} else if len(s.told) >= tellAtMost {
		return
	}
	s.told = append(s.told, toldLine{k, method, bytes.Clone(line)})
}

// parseHead reads what stands before the parameters of a stored line. A line that is not in
// the journal's own form is decoded.
func parseHead(b []byte) (seq uint64, method string, params []byte, ok bool) {
	if rest, found := bytes.CutPrefix(b, []byte(`{"type":"notification","v":1,"seq":`)); found {
		if i := bytes.IndexByte(rest, ','); i > 0 {
			seq, _ = strconv.ParseUint(string(rest[:i]), 10, 64)
		}
		const before = `"notification":{"jsonrpc":"2.0","method":"`
		head := rest[:min(len(rest), 300)]
		if i := bytes.Index(head, []byte(before)); i >= 0 && seq > 0 {
			rest = rest[i+len(before):]
			const between = `","params":`
			head = rest[:min(len(rest), 200)]
			if j := bytes.Index(head, []byte(between)); j >= 0 && bytes.IndexByte(rest[:j], '\\') < 0 {
				return seq, string(rest[:j]), rest[j+len(between):], true
			}
		}
	}
	ev, err := task.ParseLine(b)
	if err != nil || ev.Seq == 0 {
		return 0, "", nil, false
	}
	return ev.Seq, ev.Method, ev.Params, true
}

// readTail reads the last lines of a log, so that its end can be shown before the rest is
// known.
func readTail(log io.ReaderAt, size, want int64) (index, error) {
	from := max(0, size-want)
	b := make([]byte, size-from)
	n, err := log.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return index{}, err
	}
	b = b[:n]
	if from > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return index{}, nil
		}
		from, b = from+int64(i)+1, b[i+1:]
	}
	first, _, _, ok := parseHead(b[:max(0, bytes.IndexByte(b, '\n'))])
	if !ok || first == 0 || first > 1<<31 {
		return index{}, nil
	}
	s := newScanner(log)
	s.seq, s.pos, s.from = uint32(first)-1, from, from
	found, err := s.step()
	if err != nil || len(found.metas) == 0 {
		return index{}, err
	}
	x := index{tail: found.metas, tailFrom: uint32(first), tailEnd: found.end}
	for _, l := range found.links {
		if m := x.at(l.from); m != nil {
			m.next = l.to
		}
	}
	return x, nil
}
