package tui

// meta is all that is remembered of an event: 16 bytes.
type meta struct {
	low   uint32 // where its line begins in the file
	high  uint16
	kind  kind
	flags flags
	head  uint32 // the event that it is shown with; its own number if it is that itself
	next  uint32 // the next event that is shown with it; 0 is none
}

type flags uint8

const (
	isHidden flags = 1 << iota
	isBad
)

func (m meta) offset() int64 { return int64(m.high)<<32 | int64(m.low) }

func newMeta(offset int64, seq uint32) meta {
	return meta{low: uint32(offset), high: uint16(offset >> 32), head: seq}
}

// link says that an event is shown with another.
type link struct{ from, to uint32 }

const indexChunk = 4096

// index finds the events of a log by their numbers, which are gapless from 1. A long
// log's end is known before the rest: tail.
type index struct {
	chunks [][]meta
	n      uint32 // events 1 to n are known
	end    int64  // where they end in the file

	tail     []meta
	tailFrom uint32
	tailEnd  int64
}

// add takes what the scanner found.
func (x *index) add(b batch) {
	for _, m := range b.metas {
		if x.n%indexChunk == 0 {
			x.chunks = append(x.chunks, make([]meta, 0, indexChunk))
		}
		last := len(x.chunks) - 1
		x.chunks[last] = append(x.chunks[last], m)
		x.n++
	}
	x.end = b.end
	for _, l := range b.links {
		x.link(l)
	}
	if x.tail != nil && x.n >= x.tailFrom+uint32(len(x.tail))-1 {
		x.tail, x.tailFrom = nil, 0
	}
}

func (x *index) link(l link) {
	if m := x.known(l.from); m != nil {
		m.next = l.to
	}
}

// known is an event of the part that is known from the beginning.
func (x *index) known(seq uint32) *meta {
	if seq == 0 || seq > x.n {
		return nil
	}
	return &x.chunks[(seq-1)/indexChunk][(seq-1)%indexChunk]
}

// at returns an event, nil where nothing is known of it (yet).
func (x *index) at(seq uint32) *meta {
	if m := x.known(seq); m != nil {
		return m
	}
	if x.tail != nil && seq >= x.tailFrom && seq-x.tailFrom < uint32(len(x.tail)) {
		return &x.tail[seq-x.tailFrom]
	}
	return nil
}

// last is the number of the last event.
func (x *index) last() uint32 {
	if x.tail != nil {
		return max(x.n, x.tailFrom+uint32(len(x.tail))-1)
	}
	return x.n
}

// size is how long the line of an event is.
func (x *index) size(seq uint32) int64 {
	m := x.at(seq)
	if m == nil {
		return 0
	}
	if after := x.at(seq + 1); after != nil {
		return after.offset() - m.offset()
	}
	if seq <= x.n {
		return x.end - m.offset()
	}
	return x.tailEnd - m.offset()
}

// filter is what of a log is shown.
type filter struct {
	raw  bool // every stored line, as it is
	hide [kinds]bool
}

// shows reports whether an event is an item of its own on the screen.
func (f *filter) shows(m *meta, seq uint32) bool {
	if f.raw {
		return m.kind != missing
	}
	return m.head == seq && m.kind < quiet && m.kind != missing && m.flags&isHidden == 0 && !f.hide[m.kind]
}

// after finds the first item behind an event, 0 if there is none.
func (x *index) after(seq uint32, f *filter) uint32 {
	for last := x.last(); seq < last; {
		seq++
		m := x.at(seq)
		if m == nil {
			if x.tail == nil || seq >= x.tailFrom {
				return 0
			}
			seq = x.tailFrom - 1 // between the parts nothing is known
			continue
		}
		if f.shows(m, seq) {
			return seq
		}
	}
	return 0
}

// before finds the last item in front of an event, 0 if there is none that is known.
func (x *index) before(seq uint32, f *filter) uint32 {
	for seq = min(seq, x.last()+1); seq > 1; {
		seq--
		m := x.at(seq)
		if m == nil {
			return 0
		}
		if f.shows(m, seq) {
			return seq
		}
	}
	return 0
}

// headOf is the item that an event is shown in.
func (x *index) headOf(seq uint32, f *filter) uint32 {
	if m := x.at(seq); m != nil && !f.raw {
		return m.head
	}
	return seq
}

// ref is where the line of an event lies.
type ref struct {
	seq  uint32
	off  int64
	size int64
}

// maxParts bounds how many events of an item are read: of a tool that reports a thousand
// times its call and the last reports say all.
const maxParts = 256

// refs are the events that an item is made of.
func (x *index) refs(head uint32, f *filter) []ref {
	m := x.at(head)
	if m == nil {
		return nil
	}
	all := []ref{{head, m.offset(), x.size(head)}}
	if f.raw {
		return all
	}
	for seq := m.next; seq != 0; {
		m := x.at(seq)
		if m == nil {
			break
		}
		all = append(all, ref{seq, m.offset(), x.size(seq)})
		if len(all) > maxParts {
			all = append(all[:1], all[2:]...)
		}
		seq = m.next
	}
	return all
}
