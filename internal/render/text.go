package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// Options say who reads a [Text].
type Options struct {
	OutTTY, ErrTTY bool // a terminal shows the stream
	Color          bool // colour is welcome
	Dumb           bool // no escape sequence of any kind is
	Quiet          bool // only what the command or the agent says
	Raw            bool // the bytes of the output as they were, also on a terminal
	// Gone is closed when the reader of the output has gone: nobody is told anything
	// from then on. nil: nobody goes.
	Gone          <-chan struct{}
	ValueOnly     bool // the output is the validated reply; the agent's words go to the other stream
	ReasonFollows bool // whoever shows the run's end says why: a failed step does not
	Every         bool // also what is no news, such as a turn that went well: somebody asked for it
	Whole         bool // the streams show whole lines only: none is left open on the terminal
}

// Text is the sink for people and pipes.
type Text struct {
	o Options

	out, err           out
	outClean, errClean *cleaner // nil: bytes go through as they are
	buf                []byte
	mid                bool              // the terminal's cursor stands inside a line of output
	talking            bool              // the agent's last words were no whole line
	titles             map[string]string // of the tools that were begun, by id; only if Every
}

// NewText returns a sink that writes the run's own output to out and err, and what
// is said about the run to err.
func NewText(stdout, stderr io.Writer, o Options) *Text {
	t := &Text{o: o, out: out{w: stdout}, err: out{w: stderr}}
	if o.OutTTY && !o.Raw {
		t.outClean = &cleaner{color: o.Color, dumb: o.Dumb}
	}
	if o.ErrTTY && !o.Raw {
		t.errClean = &cleaner{color: o.Color, dumb: o.Dumb}
	}
	return t
}

// Err returns the first error of the output stream.
func (t *Text) Err() error { return t.out.err }

// Emit implements [task.Sink].
func (t *Text) Emit(ev task.Event) {
	switch ev.Kind {
	case task.KindOutput:
		t.output(ev)
	case task.KindAgent:
		t.agent(ev)
	case task.KindFinished:
		t.finished(ev)
	default:
		t.endWords(ev)
		if !t.o.Quiet {
			t.about(ev)
		}
	}
}

// output writes a piece of a command's output.
func (t *Text) output(ev task.Event) {
	o, err := ev.Output()
	if err != nil {
		t.line("", string(ev.Params))
		return
	}
	stream, data, err := o.Bytes()
	if err != nil || len(data) == 0 {
		return
	}
	t.data(stream, data)
}

// data writes bytes of the run to one of its streams.
func (t *Text) data(stream task.Stream, data []byte) {
	to, clean, tty := &t.out, t.outClean, t.o.OutTTY
	if stream == task.Stderr {
		to, clean, tty = &t.err, t.errClean, t.o.ErrTTY
	}
	if clean != nil {
		t.buf = clean.append(t.buf[:0], data)
		data = t.buf
	}
	if len(data) == 0 {
		return
	}
	to.write(data)
	if tty && !t.o.Whole {
		t.mid = data[len(data)-1] != '\n'
	}
}

// about writes what is said about the run, one line an event.
func (t *Text) about(ev task.Event) {
	switch ev.Kind {
	case task.KindStep:
		t.step(ev)
	case task.KindNotice:
		t.notice(ev)
	case task.KindDenied:
		t.line("denied: ", denied(ev.Params))
	case task.KindPublished:
		t.line("published: ", published(ev.Params))
	case task.KindUsage:
		// Told in the summary of those who count; not news in itself.
		if t.o.Every {
			t.line("usage: ", used(ev.Params))
		}
	case task.KindPermission:
		t.line("permission: ", permission(ev.Params))
	case task.KindTurn:
		t.turn(ev)
	case "user_message":
		t.said(ev)
	case "turn_complete", "sdk_session", "permission_resolved":
		// For programs; people see the turn itself.
	default:
		t.line(string(ev.Kind)+": ", string(ev.Params))
	}
}

func (t *Text) step(ev task.Event) {
	var s task.Step
	if json.Unmarshal(ev.Params, &s) != nil {
		return
	}
	switch {
	case s.Status == task.StepFailed && t.o.ReasonFollows:
		t.line("failed: ", s.Label)
	case s.Status == task.StepFailed:
		t.line("failed: ", joined(s.Label, s.Detail))
	case s.Status == task.StepInProgress, s.Detail != "":
		t.line("- ", joined(s.Label, s.Detail))
	}
}

func (t *Text) notice(ev task.Event) {
	var n task.Notice
	if json.Unmarshal(ev.Params, &n) != nil {
		return
	}
	word := "note"
	switch n.Level {
	case "warn":
		word = "warning"
	case "error":
		word = "error"
	}
	t.line(word+": ", n.Message)
}

// finished ends what is open and says how the run went; if quiet, only why an agent failed.
func (t *Text) finished(ev task.Event) {
	t.settle()
	var r task.Result
	err := json.Unmarshal(ev.Params, &r)
	if t.o.Quiet {
		// An agent, unlike a command, has no words and no code of its own for a failure.
		if t.o.ReasonFollows && err == nil && r.ExitCode == nil && r.Kind == string(errs.TaskFailed) && r.Error != "" {
			t.line("error: ", r.Error)
		}
		return
	}
	if err != nil {
		t.line("finished: ", string(ev.Params))
		return
	}
	for _, line := range Final(r) {
		t.line("", line)
	}
}

// line writes a line of our own to the error stream, on a line of its own.
func (t *Text) line(prefix, text string) {
	select {
	case <-t.o.Gone:
		return
	default:
	}
	t.settle()
	text = Clean(text)
	if t.o.Color {
		fmt.Fprintf(writer{&t.err}, "\x1b[2m%s%s\x1b[0m\n", prefix, text)
		return
	}
	fmt.Fprintf(writer{&t.err}, "%s%s\n", prefix, text)
}

// settle ends a colour and a line that the output left open on a terminal.
func (t *Text) settle() {
	for _, s := range []struct {
		to    *out
		clean *cleaner
	}{{&t.out, t.outClean}, {&t.err, t.errClean}} {
		if s.clean != nil {
			t.mid = t.mid || len(s.clean.tail) > 0 && !t.o.Whole // half a character, which shows now
			s.to.write(s.clean.end(nil))
		}
	}
	if t.mid && t.o.ErrTTY {
		t.err.write([]byte("\n"))
	}
	t.mid = false
}

// writer lets fmt write to an out.
type writer struct{ o *out }

func (w writer) Write(b []byte) (int, error) {
	w.o.write(b)
	return len(b), nil
}

func joined(label, detail string) string {
	return strings.TrimSuffix(label+": "+detail, ": ")
}
