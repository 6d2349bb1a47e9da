package render

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Clean returns one line of text that is safe on a terminal: without escape
// sequences and control characters, line ends as spaces.
func Clean(s string) string {
	c := cleaner{dumb: true}
	b := c.append(nil, []byte(s))
	return strings.ReplaceAll(string(c.end(b)), "\n", " ")
}

// cleaner takes out of a stream what would do more to a terminal than show text.
// It keeps its place between pieces, so that a sequence or a character cut in two
// is seen as one.
//
// What stays: text (but for the marks that turn its direction), tabs, line ends and, where colour is welcome, colours. A
// carriage return redraws its line, as a progress bar means it, but erases what
// stood there, so that nothing can hide beneath; where no sequence is welcome it
// starts a new line. Bytes that are not UTF-8 show as the replacement character.
type cleaner struct {
	color bool // keep colours
	dumb  bool // write no sequence of our own

	state  state
	params []byte // of the control sequence being read
	tail   []byte // the beginning of a character whose rest is to come
	cr     bool   // a carriage return waits for what follows
	styled bool   // a colour may be in force
}

type state int

const (
	ground  state = iota
	escape        // after ESC
	control       // in a control sequence, ESC [
	text          // in a string: OSC, DCS, SOS, PM, APC
	textEsc       // after an ESC in a string
)

// maxParams bounds a control sequence that is kept; no colour is longer.
const maxParams = 64

// append appends the cleaned src to dst.
func (c *cleaner) append(dst, src []byte) []byte {
	if len(c.tail) > 0 {
		src = append(c.tail, src...)
		c.tail = nil
	}
	for len(src) > 0 {
		if n := c.plain(src); n > 0 {
			dst = append(c.flushCR(dst, rune(src[0])), src[:n]...)
			src = src[n:]
			continue
		}
		if !utf8.FullRune(src) {
			c.tail = bytes.Clone(src)
			break
		}
		r, size := utf8.DecodeRune(src)
		dst = c.rune(dst, r)
		src = src[size:]
	}
	return dst
}

// end appends what still waits at the end of the stream.
func (c *cleaner) end(dst []byte) []byte {
	if len(c.tail) > 0 {
		c.tail = nil
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	return c.reset(dst)
}

// reset appends what ends a colour that is in force.
func (c *cleaner) reset(dst []byte) []byte {
	if c.styled {
		c.styled = false
		dst = append(dst, "\x1b[0m"...)
	}
	return dst
}

// plain returns how many bytes at the start of src go through as they are.
func (c *cleaner) plain(src []byte) int {
	if c.state != ground {
		return 0
	}
	for i, b := range src {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return i
		}
	}
	return len(src)
}

// flushCR appends what a waiting carriage return means before next.
func (c *cleaner) flushCR(dst []byte, next rune) []byte {
	if !c.cr {
		return dst
	}
	c.cr = false
	switch {
	case next == '\n':
		return dst
	case c.dumb:
		return append(dst, '\n')
	}
	return append(dst, "\r\x1b[K"...)
}

// rune takes one character that is not plain text in the ground state.
func (c *cleaner) rune(dst []byte, r rune) []byte {
	switch c.state {
	case escape:
		return c.afterEscape(dst, r)
	case control:
		return c.inControl(dst, r)
	case text:
		return c.inText(dst, r)
	case textEsc:
		c.state = ground
		if r != '\\' {
			return c.afterEscape(dst, r)
		}
		return dst
	}
	switch {
	case r == '\r':
		c.cr = true
	case r == 0x1b:
		c.state = escape
	case r == 0x9b:
		c.startControl()
	case r == 0x90, r == 0x98, r == 0x9d, r == 0x9e, r == 0x9f:
		c.state = text
	case isTurning(r):
	case r == '\n', r == '\t', r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f):
		return utf8.AppendRune(c.flushCR(dst, r), r)
	}
	return dst
}

// isTurning reports whether r changes the order in which what follows is shown: what
// people are asked to allow must read as it is.
func isTurning(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

func (c *cleaner) startControl() {
	c.state, c.params = control, c.params[:0]
}

func (c *cleaner) afterEscape(dst []byte, r rune) []byte {
	switch {
	case r == '[':
		c.startControl()
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		c.state = text
	case r >= ' ' && r <= '/':
		c.state = escape // an intermediate character: one more follows
	case r < ' ':
		c.state = ground
		return c.rune(dst, r)
	default:
		c.state = ground
	}
	return dst
}

func (c *cleaner) inControl(dst []byte, r rune) []byte {
	switch {
	case r < ' ' || r > '~': // broken off
		c.state = ground
		return c.rune(dst, r)
	case r < '@':
		if len(c.params) <= maxParams {
			c.params = append(c.params, byte(r))
		}
		return dst
	}
	c.state = ground
	if r != 'm' || !c.color || len(c.params) > maxParams || !isColor(c.params) {
		return dst
	}
	c.styled = len(c.params) > 0 && string(c.params) != "0"
	dst = append(c.flushCR(dst, 'm'), "\x1b["...)
	return append(append(dst, c.params...), 'm')
}

// inText skips a string. It ends at a line end too: output that never closes one
// must not swallow all that follows.
func (c *cleaner) inText(dst []byte, r rune) []byte {
	switch r {
	case 0x1b:
		c.state = textEsc
	case 0x07, 0x9c, 0x18, 0x1a:
		c.state = ground
	case '\n':
		c.state = ground
		return append(c.flushCR(dst, '\n'), '\n')
	}
	return dst
}

func isColor(params []byte) bool {
	for _, b := range params {
		if (b < '0' || b > '9') && b != ';' && b != ':' {
			return false
		}
	}
	return true
}

// CleanText returns text that is safe on a terminal: as [Clean], but its lines stay. Of a
// line that was redrawn, as by a progress bar, the last state stays.
func CleanText(s string) string {
	var c cleaner
	b := string(c.end(c.append(nil, []byte(s))))
	const redraw = "\r\x1b[K"
	if !strings.Contains(b, redraw) {
		return b
	}
	var out strings.Builder
	for line := range strings.Lines(b) {
		if i := strings.LastIndex(line, redraw); i >= 0 {
			line = line[i+len(redraw):]
		}
		out.WriteString(line)
	}
	return out.String()
}

// Cleaner is [CleanText] for text that comes in pieces, of which one may end inside a
// character, a sequence or a line.
type Cleaner struct {
	// Color keeps colours, and with them the redrawing of lines: it is for what a terminal
	// shows later.
	Color bool

	c    cleaner
	line []byte // whose end is to come, and which may be drawn anew
	buf  []byte
}

// maxRedraw bounds a line that can be drawn anew.
const maxRedraw = 64 << 10

// Append appends the cleaned src to dst. Without colour the last line waits for its end.
func (c *Cleaner) Append(dst, src []byte) []byte {
	c.c.color = c.Color
	if c.Color {
		return c.c.append(dst, src)
	}
	c.buf = c.c.append(c.buf[:0], src)
	return c.lines(dst, c.buf)
}

func (c *Cleaner) lines(dst, b []byte) []byte {
	const redraw = "\r\x1b[K"
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n') + 1
		part := b[:max(i, 0)]
		if i == 0 {
			part = b
		}
		b = b[len(part):]
		if j := bytes.LastIndex(part, []byte(redraw)); j >= 0 {
			c.line, part = c.line[:0], part[j+len(redraw):]
		}
		c.line = append(c.line, part...)
		if i > 0 || len(c.line) > maxRedraw {
			dst = append(dst, c.line...)
			c.line = c.line[:0]
		}
	}
	return dst
}

// End appends what still waits at the end of the stream.
func (c *Cleaner) End(dst []byte) []byte {
	if c.Color {
		return c.c.end(dst)
	}
	dst = c.lines(dst, c.c.end(nil))
	dst = append(dst, c.line...)
	c.line = nil
	return dst
}
