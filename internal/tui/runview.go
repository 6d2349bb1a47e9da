package tui

import "slices"

// pos is a row on the screen: of an item, the row within it.
type pos struct {
	seq  uint32
	line int
}

// block is an item as it is laid out.
type block struct {
	it    item
	rows  []row // nil: to be laid out
	stale bool  // there is more of it in the log than was read
}

// seen is a row of the log that is on the screen.
type seen struct {
	pos
	row row
}

const (
	// maxBlocks and maxBlockRows bound what is kept of what was read.
	maxBlocks    = 4000
	maxBlockRows = 200_000
	// maxWant is how many items are read at once.
	maxWant = 600
)

// runView is the screen of one run: a window on its log.
type runView struct {
	run  Run
	gen  int // of the log that is open; what belongs to another is dropped
	log  Log
	scan *scanner
	idx  index
	sum  summary

	filter filter
	blocks map[uint32]*block
	open   map[uint32]bool

	width, height int // of the part that shows the log
	top, cursor   pos
	follow        bool
	rows          []seen
	want          []uint32 // items that are to be read
	loading       bool
	center        bool // the cursor was put somewhere else: it stays in the upper third
	landing       int  // the cursor goes to what was found in its item, once that is there: 1 forth, -1 back

	search search
	read   int64  // how far the log was read
	size   int64  // and how long it is
	err    string // why it cannot be read
}

func newRunView(gen int, run Run) *runView {
	return &runView{run: run, gen: gen, blocks: map[uint32]*block{}, open: map[uint32]bool{}, follow: true}
}

// resize gives the log so many cells.
func (v *runView) resize(width, height int) {
	width, height = max(width, 1), max(height, 1)
	if width != v.width {
		for _, b := range v.blocks {
			b.rows = nil
		}
	}
	v.width, v.height = width, height
	v.arrange()
}

// took adds what the scanner found.
func (v *runView) took(b batch) {
	first := v.idx.n + 1
	hadTail := v.idx.tail != nil
	v.idx.add(b)
	v.read = b.end
	v.sum.damaged += b.damaged
	for _, ev := range b.told {
		v.sum.add(ev)
	}
	for _, l := range b.links {
		if m := v.idx.at(l.from); m != nil {
			if bl := v.blocks[m.head]; bl != nil && (!hadTail || l.to >= first) {
				bl.stale = true
			}
		}
	}
	if hadTail && v.idx.tail == nil { // the parts have met: items of the tail may belong together otherwise
		for _, bl := range v.blocks {
			bl.stale = true
		}
		v.top.seq, v.cursor.seq = v.idx.headOf(v.top.seq, &v.filter), v.idx.headOf(v.cursor.seq, &v.filter)
	}
	v.arrange()
}

// loaded takes items that were read.
func (v *runView) loaded(items []item) {
	v.loading = false
	for _, it := range items {
		v.blocks[it.head] = &block{it: it}
	}
	v.arrange()
	v.land()
}

// rowsOf lays out an item, if it was read, and else says that it will be.
func (v *runView) rowsOf(seq uint32) []row {
	b := v.blocks[seq]
	if b == nil || b.stale {
		v.wants(seq)
	}
	if b == nil {
		return []row{text("…", dim)}
	}
	if b.rows == nil {
		if v.filter.raw {
			b.rows = rawRows(b.it, max(1, v.width-2), v.open[seq])
		} else {
			b.rows = b.it.rows(max(1, v.width-2), v.open[seq])
		}
	}
	return b.rows
}

// rawRows shows a stored line as it is, folded to a few rows.
func rawRows(it item, width int, open bool) []row {
	rows := lines(cleanKeep(short(it.text)), plain, width)
	if limit := 3; !open && len(rows) > limit {
		rows = append(rows[:limit:limit], text("… "+itoa(len(rows)-limit)+" more lines (enter)", dim))
	}
	if it.hidden > 0 {
		rows = append(rows, text("… "+bytesText(it.hidden)+" more than are shown; s saves the log", dim))
	}
	return rows
}

func (v *runView) wants(seq uint32) {
	if len(v.want) < maxWant && !slices.Contains(v.want, seq) {
		v.want = append(v.want, seq)
	}
}

// arrange decides what is on the screen, and what has to be read for it.
func (v *runView) arrange() {
	v.want = v.want[:0]
	if v.width == 0 {
		return
	}
	v.settle()
	v.rows = v.rows[:0]
	at := v.top
	for len(v.rows) < v.height && at.seq != 0 {
		rows := v.rowsOf(at.seq)
		for i := min(at.line, len(rows)-1); i < len(rows) && len(v.rows) < v.height; i++ {
			v.rows = append(v.rows, seen{pos{at.seq, i}, rows[i]})
		}
		at = pos{v.idx.after(at.seq, &v.filter), 0}
	}
	v.around(at.seq)
	v.trim()
}

// settle puts the cursor and the top where they can be.
func (v *runView) settle() {
	last := v.idx.before(v.idx.last()+1, &v.filter)
	if last == 0 {
		v.top, v.cursor = pos{}, pos{}
		return
	}
	v.cursor = v.nearest(v.cursor)
	if v.follow {
		v.cursor = pos{last, len(v.rowsOf(last)) - 1}
	}
	v.top = v.nearest(v.top)
	n, ok := v.distance(v.top, v.cursor, v.height)
	switch {
	case v.center:
		v.top = v.back(v.cursor, v.height/3)
	case v.less(v.cursor, v.top):
		v.top = v.cursor
	case !ok, n >= v.height, v.follow:
		v.top = v.back(v.cursor, v.height-1)
	}
}

// nearest is p if that is there, else the item behind or in front of it.
func (v *runView) nearest(p pos) pos {
	m := v.idx.at(p.seq)
	if m == nil || !v.filter.shows(m, p.seq) {
		seq := v.idx.after(p.seq, &v.filter)
		if seq == 0 {
			seq = v.idx.before(p.seq, &v.filter)
		}
		if p.seq == 0 || seq != 0 {
			p = pos{seq, 0}
		}
	}
	if p.seq == 0 {
		return p
	}
	return pos{p.seq, max(0, min(p.line, len(v.rowsOf(p.seq))-1))}
}

func (v *runView) less(a, b pos) bool { return a.seq < b.seq || a.seq == b.seq && a.line < b.line }

// distance counts the rows from one to another, if they are no more than limit.
func (v *runView) distance(from, to pos, limit int) (int, bool) {
	if v.less(to, from) {
		return 0, false
	}
	n := -from.line
	for at := from.seq; at != to.seq; {
		n += len(v.rowsOf(at))
		if at = v.idx.after(at, &v.filter); at == 0 || n > limit {
			return 0, false
		}
	}
	return n + to.line, true
}

// back goes up so many rows, at most to the first.
func (v *runView) back(p pos, n int) pos {
	for n > 0 {
		if p.line >= n {
			return pos{p.seq, p.line - n}
		}
		n -= p.line + 1
		seq := v.idx.before(p.seq, &v.filter)
		if seq == 0 {
			return pos{p.seq, 0}
		}
		p = pos{seq, len(v.rowsOf(seq)) - 1}
	}
	return p
}

// forth goes down so many rows, at most to the last.
func (v *runView) forth(p pos, n int) pos {
	for n > 0 {
		left := len(v.rowsOf(p.seq)) - 1 - p.line
		if left >= n {
			return pos{p.seq, p.line + n}
		}
		n -= left + 1
		seq := v.idx.after(p.seq, &v.filter)
		if seq == 0 {
			return pos{p.seq, p.line + left}
		}
		p = pos{seq, 0}
	}
	return p
}

// around wants what is just above and below the screen, so that it is there before it is
// scrolled to.
func (v *runView) around(below uint32) {
	for i, seq := 0, below; i < v.height && seq != 0; i++ {
		if b := v.blocks[seq]; b == nil || b.stale {
			v.wants(seq)
		}
		seq = v.idx.after(seq, &v.filter)
	}
	for i, seq := 0, v.top.seq; i < 2*v.height && seq != 0; i++ {
		if b := v.blocks[seq]; b == nil || b.stale {
			v.wants(seq)
		}
		seq = v.idx.before(seq, &v.filter)
	}
}

// trim forgets what is far away.
func (v *runView) trim() {
	total := 0
	for _, b := range v.blocks {
		total += len(b.rows)
	}
	if len(v.blocks) <= maxBlocks && total <= maxBlockRows || len(v.rows) == 0 {
		return
	}
	first, last := v.rows[0].seq, v.rows[len(v.rows)-1].seq
	margin := uint32(8 * v.height)
	for seq := range v.blocks {
		if seq+margin < first || seq > last+margin || len(v.blocks[seq].rows) > maxBlockRows/10 && (seq < first || seq > last) {
			delete(v.blocks, seq)
		}
	}
}
