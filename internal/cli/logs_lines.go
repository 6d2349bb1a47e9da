package cli

import (
	"bytes"
	"io"
	"regexp"

	"github.com/Insights/insightscli/internal/render"
)

// maxHeldLine bounds what is held of a line that has no end yet: of a longer one every
// part counts as a line.
const maxHeldLine = 1 << 20

// redraw is what a screen draws a line anew with.
const redraw = "\r\x1b[K"

// lineWriter hands whole lines on: those that match, with a word before each. It is not
// safe for several at once.
type lineWriter struct {
	w      io.Writer
	prefix string
	match  *regexp.Regexp // nil: all
	tell   bool           // hand on nothing: only hit is wanted
	last   *lastLines     // nil: they are written at once

	held []byte // a line whose end is to come
	hit  bool   // a line has matched
	err  error
	buf  []byte
}

// Write implements io.Writer.
func (l *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && l.err == nil {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.held = append(l.held, b...)
			if len(l.held) >= maxHeldLine {
				l.flush()
			}
			break
		}
		line := b[:i]
		if len(l.held) > 0 {
			l.held = append(l.held, line...)
			line = l.held
		}
		l.line(line)
		l.held = l.held[:0]
		b = b[i+1:]
	}
	return n, l.err
}

// flush ends the line that is held.
func (l *lineWriter) flush() {
	if len(l.held) > 0 {
		l.line(l.held)
		l.held = l.held[:0]
	}
}

// line takes a whole line, without its end.
func (l *lineWriter) line(b []byte) {
	if l.match != nil && !matches(l.match, b) {
		return
	}
	l.hit = true
	if l.tell || l.err != nil {
		return
	}
	l.buf = append(l.buf[:0], l.prefix...)
	if l.prefix != "" { // it would be drawn over, and coloured by what goes before it
		if i := bytes.LastIndex(b, []byte(redraw)); i >= 0 {
			b = b[i+len(redraw):]
		}
	}
	l.buf = append(l.buf, b...)
	if l.prefix != "" && bytes.IndexByte(b, 0x1b) >= 0 {
		l.buf = append(l.buf, "\x1b[0m"...)
	}
	l.buf = append(l.buf, '\n')
	if l.last != nil {
		l.last.add(l.w, l.buf)
		return
	}
	_, l.err = l.w.Write(l.buf)
}

// matches looks at a line as it would be seen.
func matches(re *regexp.Regexp, line []byte) bool {
	if bytes.IndexByte(line, 0x1b) >= 0 || bytes.IndexByte(line, '\r') >= 0 {
		return re.MatchString(render.Clean(string(line)))
	}
	return re.Match(line)
}

// lastLines keeps the last lines that were written, to whichever stream.
type lastLines struct {
	max   int
	lines []keptLine
}

type keptLine struct {
	to   io.Writer
	text []byte
}

func (k *lastLines) add(to io.Writer, line []byte) {
	if k.max == 0 {
		return
	}
	if len(k.lines) >= k.max {
		k.lines = append(k.lines[:0], k.lines[1:]...)
	}
	k.lines = append(k.lines, keptLine{to, bytes.Clone(line)})
}

// release writes them.
func (k *lastLines) release() error {
	for _, l := range k.lines {
		if _, err := l.to.Write(l.text); err != nil {
			return err
		}
	}
	k.lines = nil
	return nil
}
