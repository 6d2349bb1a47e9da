package journal

import (
	"bytes"
	"errors"
	"io"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// block is how much of a log is read at once when it is read from its end.
	block = 64 << 10
	// headBytes is enough of a line to hold everything before its parameters.
	headBytes = 512
	// holeWindow is how far from the end of a log a hole is looked for. What lies
	// before was synced long ago.
	holeWindow = 8 << 20
)

// tail is what the end of a log tells.
type tail struct {
	end     int64  // where the last whole line ends
	last    int64  // where it begins
	seq     uint64 // its number
	eventID uint64 // the last number of the agent server's own
}

// readTail reads a log of the given size from its end, in bounded memory. Bytes
// after the last line feed are torn, and so is everything from a NUL byte on: where
// a power cut has lost a page before a later one the file has a hole of NULs, which
// no JSON holds.
func readTail(f io.ReaderAt, size int64) (tail, error) {
	var t tail
	limit, err := firstNUL(f, size)
	if err != nil {
		return t, err
	}
	r := backward{f: f}
	t.end, err = r.lineStart(limit) // just behind the last line feed
	if err != nil {
		return t, err
	}
	for pos := t.end; pos > 0; {
		start, err := r.lineStart(pos - 1)
		if err != nil {
			return t, err
		}
		h, err := r.head(start, pos)
		if err != nil && !errors.Is(err, task.ErrLine) {
			return t, err
		}
		if err != nil && t.seq == 0 {
			t.end = start // the last line is no event: it counts as torn
		}
		if err == nil && t.seq == 0 {
			t.last, t.seq = start, h.seq
		}
		if err == nil && h.eventID != 0 {
			t.eventID = h.eventID
			return t, nil
		}
		pos = start
	}
	return t, nil
}

// firstNUL returns the place of the first NUL byte near the end of a log, or size.
func firstNUL(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, block)
	for pos := max(0, size-holeWindow); pos < size; pos += block {
		n, err := f.ReadAt(buf[:min(block, size-pos)], pos)
		if i := bytes.IndexByte(buf[:n], 0); i >= 0 {
			return pos + int64(i), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	return size, nil
}

// backward reads a file from its end, keeping one block.
type backward struct {
	f    io.ReaderAt
	data []byte // the block
	off  int64  // where it lies
}

// lineStart returns the place just behind the last line feed before end, 0 if there
// is none.
func (b *backward) lineStart(end int64) (int64, error) {
	for end > 0 {
		if err := b.load(end); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b.data[:end-b.off], '\n'); i >= 0 {
			return b.off + int64(i) + 1, nil
		}
		end = b.off
	}
	return 0, nil
}

// load makes the block hold the bytes before end.
func (b *backward) load(end int64) error {
	if b.data != nil && end > b.off && end <= b.off+int64(len(b.data)) {
		return nil
	}
	off := max(0, end-block)
	if cap(b.data) < block {
		b.data = make([]byte, block)
	}
	b.data, b.off = b.data[:end-off], off
	_, err := io.ReadFull(io.NewSectionReader(b.f, off, end-off), b.data)
	return err
}

// head reads the header of the line from start to end.
func (b *backward) head(start, end int64) (header, error) {
	buf := make([]byte, min(headBytes, end-start))
	if _, err := io.ReadFull(io.NewSectionReader(b.f, start, end-start), buf); err != nil {
		return header{}, err
	}
	if h, ok := parseHeader(buf); ok {
		return h, nil
	}
	// Not written by this package: read the whole line.
	if end-start > maxLine {
		return header{}, task.ErrLine
	}
	line := make([]byte, end-start)
	if _, err := io.ReadFull(io.NewSectionReader(b.f, start, end-start), line); err != nil {
		return header{}, err
	}
	ev, err := task.ParseLine(line)
	return header{seq: ev.Seq, eventID: ev.EventID}, err
}
