// Package render turns the events of a run into bytes: JSON lines for programs
// ([JSONL]) and text for people and pipes ([Text]). Both are sinks; what they show
// depends on the events alone, never on a clock.
//
// The bytes of a command's output go to the output stream as they were, unless a
// terminal shows them: then escape sequences and control characters are taken out
// first, because output must not be able to write over our lines, set the window's
// title or the clipboard, or leave the screen in another mode. Everything else
// goes to the error stream. Memory is bounded by the size of one event: a long
// line arrives in pieces and is put together again by writing one after the other.
//
// A sink whose reader has gone writes nothing more and keeps the error for Err.
package render

import (
	"io"

	"github.com/Insights/insightscli/internal/task"
)

// out is a stream that remembers its first error.
type out struct {
	w   io.Writer
	err error
}

func (o *out) write(b []byte) {
	if o.err == nil && len(b) > 0 {
		_, o.err = o.w.Write(b)
	}
}

// JSONL is the sink of --json: exactly the stored lines.
type JSONL struct {
	out out
	buf []byte
}

// NewJSONL returns a sink that writes to w.
func NewJSONL(w io.Writer) *JSONL { return &JSONL{out: out{w: w}} }

// Emit implements [task.Sink].
func (j *JSONL) Emit(ev task.Event) {
	j.buf = ev.AppendLine(j.buf[:0])
	j.out.write(j.buf)
}

// Err returns the first error of the stream.
func (j *JSONL) Err() error { return j.out.err }

var (
	_ task.Sink = (*JSONL)(nil)
	_ task.Sink = (*Text)(nil)
)
