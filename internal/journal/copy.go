package journal

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/Insights/insightscli/internal/task"
)

// copyTo writes every line that drain would visit. Lines that follow one another are
// written at once, from where they were read.
func (r *reader) copyTo(ctx context.Context, w io.Writer) error {
	for !r.finished {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fileError("CopyLog", "read the log", err)
		}
		if !r.good(line) {
			continue
		}
		if _, err := w.Write(r.extend(line)); err != nil {
			return err
		}
	}
	return nil
}

// extend adds to a good line those that stand behind it in the buffer, up to the first
// that is none.
func (r *reader) extend(run []byte) []byte {
	for !r.finished {
		i := bytes.IndexByte(r.buf, '\n')
		if i < 0 || !r.good(r.take(i+1)) {
			break
		}
		run = run[:len(run)+i+1] // into the line that was taken: both lie in r.mem
	}
	return run
}

// good takes note of a line, and reports whether it is an event that was not read yet.
func (r *reader) good(line []byte) bool {
	h, ok := parseHeader(line)
	if ok {
		_, ok = h.payload(line)
	}
	if !ok {
		return r.visit(line, func([]byte, task.Event) error { return errGood }) != nil
	}
	if h.seq <= r.after {
		return false
	}
	r.after = h.seq
	r.finished = r.known.of(h.method).kind == task.KindFinished
	return true
}

// errGood tells good that a line was visited.
var errGood = errors.New("a good line")
