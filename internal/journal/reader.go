package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// readSize is how much of a log is read at once.
	readSize = 256 << 10
	// maxLine bounds a line: more than any event of ours, whose parts are bounded at
	// 1 MiB and may grow to several when they are escaped.
	maxLine = 16 << 20
)

// reader reads the whole lines of a log from left to right. A torn line at the end
// stays unread and is read anew next time: its owner may complete it, or cut it off
// and write another.
type reader struct {
	f        io.ReaderAt
	after    uint64
	pos      int64  // of the first byte of buf in the file
	buf      []byte // bytes read and not consumed, a part of mem
	mem      []byte
	finished bool // the finished event has gone by
	skipping bool // within a line longer than maxLine
	bad      int  // lines passed over
	known    methods
}

func newReader(f *os.File, after uint64) *reader {
	r := &reader{f: f, after: after, known: methods{}}
	if info, err := f.Stat(); err == nil && after > 0 {
		r.pos = seekSeq(f, info.Size(), after)
	}
	return r
}

// drain visits everything that is there.
func (r *reader) drain(ctx context.Context, visit Visit) error {
	for !r.finished {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fileError("ReadLog", "read the log", err)
		}
		if err := r.visit(line, visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) visit(line []byte, visit Visit) error {
	h, ok := parseHeader(line)
	if ok && h.seq <= r.after {
		return nil
	}
	var ev task.Event
	if ok {
		ev, ok = h.event(line, r.known)
	}
	if !ok {
		var err error
		if ev, err = task.ParseLine(line); err != nil {
			r.bad++
			return nil
		}
	}
	if ev.Seq <= r.after {
		return nil
	}
	r.after = ev.Seq
	r.finished = ev.Kind == task.KindFinished
	return visit(line, ev)
}

// next returns the next whole line, valid until the next call, or io.EOF when there
// is none yet.
func (r *reader) next() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buf[searched:], '\n'); i >= 0 {
			line := r.take(searched + i + 1)
			if !r.skipping {
				return line, nil
			}
			r.skipping, searched = false, 0
			r.bad++
			continue
		}
		searched = len(r.buf)
		if searched > maxLine {
			r.take(searched)
			r.skipping, searched = true, 0
		}
		if err := r.more(); err != nil {
			return nil, err
		}
	}
}

// take consumes n bytes.
func (r *reader) take(n int) []byte {
	line := r.buf[:n]
	r.buf, r.pos = r.buf[n:], r.pos+int64(n)
	return line
}

// more reads on. At the end of the file it forgets the torn line and returns
// io.EOF.
func (r *reader) more() error {
	r.makeRoom()
	n, err := r.f.ReadAt(r.buf[len(r.buf):cap(r.buf)], r.pos+int64(len(r.buf)))
	if n > 0 {
		r.buf = r.buf[:len(r.buf)+n]
		return nil
	}
	if errors.Is(err, io.EOF) {
		r.buf = r.buf[:0]
	}
	return err
}

// makeRoom leaves at least half of readSize behind buf. Memory that one long line
// needed is given back after it.
func (r *reader) makeRoom() {
	switch n := len(r.buf); {
	case cap(r.buf)-n >= readSize/2:
		return
	case n > len(r.mem)-readSize/2:
		r.mem = make([]byte, max(readSize, 2*n))
	case len(r.mem) > 4*readSize && n < readSize/2:
		r.mem = make([]byte, readSize)
	}
	r.buf = r.mem[:copy(r.mem, r.buf)]
}

// seekSeq returns the beginning of a line at or before the first whose number is
// higher than after. Numbers only grow, so it halves its way there; anything
// unexpected sends the reader to the beginning.
func seekSeq(f io.ReaderAt, size int64, after uint64) int64 {
	lo, hi := int64(0), size
	for hi-lo > readSize {
		mid := lo + (hi-lo)/2
		start, h, ok := headerAfter(f, mid, hi)
		switch {
		case !ok:
			hi = mid // a line longer than what is left, or not ours: look before it
		case h.seq <= after:
			lo = start
		default:
			hi = mid
		}
	}
	return lo
}

// headerAfter finds the first line that begins after pos and before end.
func headerAfter(f io.ReaderAt, pos, end int64) (int64, header, bool) {
	buf := make([]byte, block)
	for pos < end {
		n, _ := f.ReadAt(buf[:min(block, end-pos)], pos)
		if n == 0 {
			return 0, header{}, false
		}
		i := bytes.IndexByte(buf[:n], '\n')
		if i < 0 {
			pos += int64(n)
			continue
		}
		start := pos + int64(i) + 1
		n, _ = f.ReadAt(buf[:min(headBytes, max(0, end-start))], start)
		h, ok := parseHeader(buf[:n])
		return start, h, ok
	}
	return 0, header{}, false
}
