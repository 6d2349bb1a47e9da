package render_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// hostile is output that a terminal must not get as it is, cut where it hurts most.
func hostile() []task.Event {
	s := &story{}
	note := func(m string) { s.add(task.KindNotice, task.Notice{Level: "info", Message: m}) }
	s.output(task.Stdout, "window title \x1b]0;ev", true)
	s.output(task.Stdout, "il\x07gone\n", false)
	s.output(task.Stdout, "link \x1b]8;;http://evil\x1b", true)
	s.output(task.Stdout, "\\text\x1b]8;;\x1b\\\n", false)
	s.output(task.Stdout, "clipboard \x1b]52;c;ZXZpbA==\x1b\\gone\n", false)
	s.output(task.Stdout, "never ends \x1bPq1234\nnext line\n", false)
	s.output(task.Stdout, "NUL \x00, bell \a, delete \x7f, vertical tab \v.\n", false)
	s.output(task.Stdout, "bytes \xff\xfe, half a character \xe6\x97", true)
	s.output(task.Stdout, "\xa5, C1 \u009b2J.\n", false)
	s.output(task.Stdout, " 1%\r", true)
	s.output(task.Stdout, " 50%\r", true)
	s.output(task.Stdout, "100%\r", true)
	s.output(task.Stdout, "\ndone\n", false)
	s.output(task.Stdout, "one line in ", true)
	s.output(task.Stderr, "between\n", false)
	s.output(task.Stdout, "two pieces\n", false)
	s.output(task.Stdout, "\x1b[1;31mred, open, ", true)
	note("a note \x1b[2J\x1b]0;evil\x07in\r\nbetween")
	s.output(task.Stdout, "and on\x1b[0m\n", false)
	s.output(task.Stdout, "modes \x1b[?1049h\x1b[?25l\x1b[>4;2m\x1bc\x1b(0gone\n", false)
	s.output(task.Stderr, "\xc3", true)
	note("half a character before")
	s.output(task.Stdout, "no end", true)
	s.add(task.KindFinished, task.Result{Run: run, State: task.StateCompleted})
	return s.events
}

func TestGoldenHostileOutput(t *testing.T) {
	for name, o := range map[string]render.Options{
		"pipe":     {},
		"terminal": {OutTTY: true, ErrTTY: true},
		"colour":   {OutTTY: true, ErrTTY: true, Color: true},
		"dumb":     {OutTTY: true, ErrTTY: true, Dumb: true},
		"quiet":    {OutTTY: true, ErrTTY: true, Quiet: true},
		"to-pager": {OutTTY: false, ErrTTY: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, both := emit(o, hostile())
			golden(t, "hostile-"+name+".txt", []byte(both))
		})
	}
}

// On a terminal nothing but text, tabs, line ends, a redraw of ours and colours may
// arrive, wherever output is cut: each event in pieces of one byte.
func TestCutAnywhereATerminalGetsTheSame(t *testing.T) {
	var whole, pieces story
	for _, ev := range hostile() {
		o, err := ev.Output()
		if err != nil || ev.Kind != task.KindOutput {
			continue
		}
		stream, data, err := o.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		whole.output(stream, string(data), true)
		for _, b := range data {
			pieces.output(stream, string([]byte{b}), true)
		}
	}
	for _, o := range []render.Options{{OutTTY: true}, {OutTTY: true, Color: true}, {OutTTY: true, Dumb: true}} {
		a, _, _ := emit(o, whole.events)
		b, _, _ := emit(o, pieces.events)
		if a != b {
			t.Errorf("%+v: whole %q, in pieces %q", o, a, b)
		}
		left := strings.NewReplacer("\r\x1b[K", "", "\x1b[1;31m", "", "\x1b[0m", "").Replace(a)
		if i := strings.IndexAny(left, "\x00\a\b\v\x1b\r\x7f"); i >= 0 {
			t.Errorf("%+v lets %q through", o, left[i:])
		}
	}
}

// lengths counts what is written and remembers the largest write.
type lengths struct{ n, largest int }

func (l *lengths) Write(b []byte) (int, error) {
	l.n, l.largest = l.n+len(b), max(l.largest, len(b))
	return len(b), nil
}

// A line of 3 MB goes through piece by piece. A sink that put it together first would
// hold whatever a command likes to print.
func TestHugeLineIsNotHeld(t *testing.T) {
	for name, fill := range map[string]string{
		"text": "x", "a string that never ends": "\x1b]0;", "one endless sequence": "\x1b[1;", "no text at all": "\xff", "characters": "é",
	} {
		piece := fill + strings.Repeat(fill[len(fill)-1:], 64<<10-len(fill))
		if name == "characters" {
			piece = strings.Repeat(fill, 32<<10)
		}
		for _, o := range []render.Options{{}, {OutTTY: true, ErrTTY: true, Color: true}} {
			out := &lengths{}
			sink := render.NewText(out, io.Discard, o)
			s := &story{}
			s.output(task.Stdout, piece, true)
			for range 48 {
				sink.Emit(s.events[0])
			}
			if !o.OutTTY && out.n != 48*len(piece) {
				t.Errorf("%s: %d bytes", name, out.n)
			}
			// A byte that is no text becomes three.
			if out.largest > 3*len(piece)+3 {
				t.Errorf("%s: a write of %d bytes", name, out.largest)
			}
			if got := render.Held(sink); got > 4*64<<10 {
				t.Errorf("%s: %d bytes are held", name, got)
			}
		}
	}
}

// closing is a pipe whose reader goes after some bytes.
type closing struct {
	got  bytes.Buffer
	left int
}

func (c *closing) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.got.Write(b[:n])
	if c.left -= n; n < len(b) {
		return n, term.ErrGone
	}
	return n, nil
}

// `insightscli logs RUN | head -1`: what was read is a beginning of the output, nothing
// is written after the first failure, and the error is the one that ends quietly.
func TestClosedPipeEndsQuietly(t *testing.T) {
	var text, lines bytes.Buffer
	full, fullLines := render.NewText(&text, io.Discard, render.Options{}), render.NewJSONL(&lines)
	for _, ev := range hostile() {
		full.Emit(ev)
		fullLines.Emit(ev)
	}
	for _, left := range []int{0, 1, 20, 100} {
		a, b := &closing{left: left}, &closing{left: left}
		sinkA, sinkB := render.NewText(a, io.Discard, render.Options{}), render.NewJSONL(b)
		for _, ev := range hostile() {
			sinkA.Emit(ev)
			sinkB.Emit(ev)
		}
		if !errors.Is(sinkA.Err(), term.ErrGone) || a.got.String() != text.String()[:left] {
			t.Errorf("after %d bytes: %q, %v", left, &a.got, sinkA.Err())
		}
		if !errors.Is(sinkB.Err(), term.ErrGone) || b.got.String() != lines.String()[:left] {
			t.Errorf("JSON after %d bytes: %q, %v", left, &b.got, sinkB.Err())
		}
	}
}

// Messages that nobody reads do not stop the output.
func TestLostErrorStreamKeepsTheOutput(t *testing.T) {
	var out bytes.Buffer
	sink := render.NewText(&out, &closing{}, render.Options{})
	for _, ev := range everything() {
		sink.Emit(ev)
	}
	want, _, _ := emit(render.Options{}, everything())
	if sink.Err() != nil || out.String() != want {
		t.Errorf("%q, %v", &out, sink.Err())
	}
}
