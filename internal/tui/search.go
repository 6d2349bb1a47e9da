package tui

import (
	"bytes"
	"encoding/json"
	"io"
	"math/bits"
	"strings"
	"sync/atomic"
	"unicode"
)

// searchStep is how much of a log is searched before the screen hears of it.
const searchStep = 16 << 20

// maxDepth is how deep a value is looked into; how deep it is is a sandbox's own choice.
const maxDepth = 32

// search is what is being looked for, and where it was found so far.
type search struct {
	id     int // of this search; answers of others are dropped
	query  string
	hits   bitset
	pos    int64 // up to where was searched
	busy   bool
	stop   *atomic.Bool // set when nobody wants the answer any more
	toward int          // where the cursor goes when something is found: 1 forth, -1 back, 0 nowhere
}

// bitset is a set of events.
type bitset []uint64

func (b *bitset) add(n uint32) {
	for int(n/64) >= len(*b) {
		*b = append(*b, make([]uint64, max(64, len(*b)))...)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bitset) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]&(1<<(n%64)) != 0 }

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// found is the answer of one step of a search.
type foundMsg struct {
	gen, id int
	hits    []uint32
	end     int64
	err     error
}

// searcher looks for a text in stored lines.
type searcher struct {
	needles [][]byte
	fold    bool // capitals do not count
	raw     bool // everything counts; else what people said and saw
	stop    *atomic.Bool
}

func newSearcher(query string, raw bool) searcher {
	s := searcher{fold: strings.IndexFunc(query, unicode.IsUpper) < 0, raw: raw}
	for _, escape := range []bool{false, true} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escape)
		_ = enc.Encode(query) // a text can always be encoded
		n := bytes.TrimSpace(b.Bytes())
		n = n[1 : len(n)-1]
		if s.fold {
			n = lower(nil, n)
		}
		if len(s.needles) == 0 || !bytes.Equal(n, s.needles[0]) {
			s.needles = append(s.needles, n)
		}
	}
	return s
}

// lower writes b in small letters behind dst, byte by byte: letters beyond ASCII are
// found as they are typed.
func lower(dst, b []byte) []byte {
	n := len(dst)
	dst = append(dst, b...)
	for i, c := range dst[n:] {
		if c-'A' < 26 {
			dst[n+i] = c + 'a' - 'A'
		}
	}
	return dst
}

// search looks through the log from a place on, one step.
func (s searcher) search(log io.ReaderAt, from int64) (hits []uint32, end int64, err error) {
	buf := make([]byte, scanSize)
	var folded []byte
	for end = from; end-from < searchStep && (s.stop == nil || !s.stop.Load()); {
		n, err := log.ReadAt(buf, end)
		if n == 0 {
			return hits, end, eof(err)
		}
		whole := bytes.LastIndexByte(buf[:n], '\n') + 1
		if whole == 0 {
			if n < len(buf) {
				return hits, end, nil // a torn line
			}
			if end, err = skipLine(log, end+int64(n)); err != nil {
				return hits, end, eof(err)
			}
			continue
		}
		hay := buf[:whole]
		if s.fold {
			folded = lower(folded[:0], hay)
			hay = folded
		}
		hits = s.in(hay, buf[:whole], hits)
		end += int64(whole)
	}
	return hits, end, nil
}

func eof(err error) error {
	if err == io.EOF { //nolint:errorlint // ReaderAt returns it as it is
		return nil
	}
	return err
}

// skipLine finds the end of a line that is longer than all that is held.
func skipLine(log io.ReaderAt, at int64) (int64, error) {
	b := make([]byte, scanSize)
	for {
		n, err := log.ReadAt(b, at)
		if i := bytes.IndexByte(b[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if at += int64(n); err != nil {
			return at, err
		}
	}
}

// in finds the lines of a piece that hold a needle. hay is what is searched, orig the same
// as it is stored.
func (s searcher) in(hay, orig []byte, hits []uint32) []uint32 {
	for _, needle := range s.needles {
		for at := 0; at < len(hay); {
			i := bytes.Index(hay[at:], needle)
			if i < 0 {
				break
			}
			i += at
			start := bytes.LastIndexByte(hay[:i], '\n') + 1
			end := i + bytes.IndexByte(hay[i:], '\n') + 1
			if end <= i {
				end = len(hay)
			}
			if seq, _, params, ok := parseHead(orig[start:end]); ok && (s.raw || s.shown(params, 0)) {
				hits = append(hits, uint32(seq))
			}
			at = end
		}
	}
	return hits
}

// shown reports whether one of the texts in a value holds a needle, as opposed to the
// names and words of the protocol.
func (s searcher) shown(value []byte, depth int) (is bool) {
	switch {
	case len(value) == 0:
		return false
	case value[0] == '"', depth > maxDepth:
		if s.fold {
			value = lower(nil, value)
		}
		for _, n := range s.needles {
			if bytes.Contains(value, n) {
				return true
			}
		}
		return false
	case value[0] == '[':
		return s.inList(value, depth+1)
	}
	fields(value, func(k, v []byte) bool {
		switch string(k) {
		case "sessionUpdate", "type", "toolCallId", "sessionId", "kind", "status", "requestId", "optionId", "_meta":
			return true
		}
		is = s.shown(v, depth+1)
		return !is
	})
	return is
}

func (s searcher) inList(b []byte, depth int) bool {
	for b = b[1:]; ; {
		b = skipSpace(b)
		if len(b) == 0 || b[0] == ']' {
			return false
		}
		n := skipValue(b)
		if n == 0 || s.shown(b[:n], depth) {
			return n != 0
		}
		b = skipSpace(b[n:])
		if len(b) > 0 && b[0] == ',' {
			b = b[1:]
		}
	}
}

// seek begins to look for something else, or with an empty query for nothing.
func (v *runView) seek(query string) {
	if v.search.stop != nil {
		v.search.stop.Store(true)
	}
	v.search = search{id: v.search.id + 1, query: query, toward: v.search.toward, stop: &atomic.Bool{}}
}

// nextHit finds the next item with a hit, or the one before; 0 is none.
func (v *runView) nextHit(forth bool) uint32 {
	seq := v.cursor.seq
	for last := v.idx.last(); ; {
		if forth {
			seq++
		} else {
			seq--
		}
		if seq == 0 || seq > last {
			return 0
		}
		if !v.search.hits.has(seq) {
			continue
		}
		head := v.idx.headOf(seq, &v.filter)
		if m := v.idx.at(head); m != nil && head != v.cursor.seq && v.filter.shows(m, head) {
			return head
		}
	}
}

// hit moves the cursor to the next thing that was found: within its item, or in another.
func (v *runView) hit(forth bool) bool {
	if v.hitWithin(forth) {
		return true
	}
	seq := v.nextHit(forth)
	if seq == 0 {
		return false
	}
	v.goTo(seq, forth)
	return true
}

// goTo opens an item and moves the cursor to what was found in it.
func (v *runView) goTo(seq uint32, forth bool) {
	v.open[seq] = true
	if b := v.blocks[seq]; b != nil {
		b.rows = nil
	}
	v.jump(seq)
	if v.landing = 1; !forth {
		v.landing = -1
	}
	v.land()
}

// hitWithin moves the cursor to the next row of its item that holds the query.
func (v *runView) hitWithin(forth bool) bool {
	rows := v.rowsOf(v.cursor.seq)
	step := 1
	if !forth {
		step = -1
	}
	for i := v.cursor.line + step; i >= 0 && i < len(rows); i += step {
		if len(matches(rows[i].String(), v.search.query)) > 0 {
			v.follow = false
			v.cursor.line = i
			v.arrange()
			return true
		}
	}
	return false
}

// land moves the cursor to the row of its item that holds the query, if it is on its way
// there and the item was read.
func (v *runView) land() {
	if v.landing == 0 || v.blocks[v.cursor.seq] == nil {
		return
	}
	rows := v.rowsOf(v.cursor.seq)
	for i := range rows {
		at := i
		if v.landing < 0 {
			at = len(rows) - 1 - i
		}
		if len(matches(rows[at].String(), v.search.query)) > 0 {
			v.cursor.line = at
			break
		}
	}
	v.landing = 0
	v.arrange()
}
