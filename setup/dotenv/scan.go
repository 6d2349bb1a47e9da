package dotenv

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// line is a line of the file, or several where a quoted value goes over them. Offsets
// are into File.src.
type line struct {
	start, end int // the line ending included
	number     int // of the first, from 1

	key      string // "" if it assigns nothing
	keyEnd   int
	valueAt  int // where the value as written begins, quotes included
	valueEnd int
	value    string
	behind   []byte // what stands behind the value: blanks, a comment
	bad      bool   // neither an assignment nor blank nor a comment
}

// scan splits src into lines and reads them.
func scan(src []byte) *File {
	f := &File{src: src, last: map[string]int{}}
	number := 1
	for at := len(src) - len(bytes.TrimPrefix(src, []byte(mark))); at < len(src); {
		l := f.readLine(at)
		l.number = number
		number += bytes.Count(src[at:l.end], []byte{'\n'})
		at = l.end
		if l.key != "" {
			f.last[l.key] = len(f.lines)
		}
		f.lines = append(f.lines, l)
	}
	return f
}

// readLine reads the line that begins at start.
func (f *File) readLine(start int) line {
	end := len(f.src)
	if i := bytes.IndexByte(f.src[start:], '\n'); i >= 0 {
		end = start + i + 1
	}
	text := bytes.TrimSpace(f.src[start:end])
	if len(text) == 0 || text[0] == '#' {
		return line{start: start, end: end}
	}
	if l, ok := f.assignment(start); ok {
		return l
	}
	return line{start: start, end: end, bad: true}
}

// assignment reads [export] KEY=VALUE or KEY: VALUE, which may go over several lines.
func (f *File) assignment(start int) (line, bool) {
	indent := bytes.TrimLeftFunc(f.src[start:], isSpace)
	at := len(f.src) - len(indent)
	if rest, ok := bytes.CutPrefix(indent, []byte("export")); ok && blanks(rest) > 0 {
		at += len("export") + blanks(rest)
	}
	l := line{start: start, keyEnd: at + keyLength(f.src[at:])}
	l.key = string(f.src[at:l.keyEnd])
	at = l.keyEnd + blanks(f.src[l.keyEnd:])
	if strings.Trim(l.key, "0123456789") == "" || at == len(f.src) || f.src[at] != '=' && f.src[at] != ':' {
		return line{}, false
	}
	separator := at + 1
	l.valueAt = separator + blanks(f.src[separator:])
	if l.valueAt < len(f.src) && (f.src[l.valueAt] == '\'' || f.src[l.valueAt] == '"') {
		return f.quoted(l)
	}
	return f.unquoted(l, separator), true
}

// unquoted reads a value that ends with its line or at a comment.
func (f *File) unquoted(l line, separator int) line {
	text := f.src[separator:]
	if i := bytes.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i]
	}
	lineEnd := separator + len(text)
	for i := range text {
		if text[i] == '#' && spaceBefore(text[:i]) {
			text = text[:i]
			break
		}
	}
	text = bytes.TrimRightFunc(text, isSpace)
	l.valueEnd = separator + len(text)
	l.valueAt = min(l.valueAt, l.valueEnd)
	l.behind = f.src[l.valueEnd:lineEnd]
	l.value = f.expand(f.src[l.valueAt:l.valueEnd], 0)
	l.end, _ = f.restOfLine(lineEnd)
	return l
}

// quoted reads a value in quotes. It ends at the first quote that a shell would take for
// the end; if more stands behind that, at the first one without a backslash before it,
// which is godotenv's rule.
func (f *File) quoted(l line) (line, bool) {
	quote := f.src[l.valueAt]
	inner := f.src[l.valueAt+1:]
	for _, closing := range []func([]byte, byte) int{shellClosing, looseClosing} {
		n := closing(inner, quote)
		if n < 0 {
			continue
		}
		l.valueEnd = l.valueAt + 1 + n + 1
		if tail := backslashTail(l.key); quote == '"' && bytes.HasPrefix(f.src[l.valueEnd:], []byte(tail)) {
			l.valueEnd += len(tail)
		}
		end, ok := f.restOfLine(l.valueEnd)
		if !ok {
			continue
		}
		l.end = end
		l.behind = bytes.TrimRight(f.src[l.valueEnd:end], "\r\n")
		l.value = f.expand(inner[:n], quote)
		return l, true
	}
	return line{}, false
}

func shellClosing(inner []byte, quote byte) int {
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == quote:
			return i
		case inner[i] == '\\' && quote == '"':
			i++
		}
	}
	return -1
}

func looseClosing(inner []byte, quote byte) int {
	for i, c := range inner {
		if c == quote && (i == 0 || inner[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// restOfLine returns where the line that at lies in ends, if nothing but blanks and a
// comment stand there.
func (f *File) restOfLine(at int) (end int, ok bool) {
	at += blanks(f.src[at:])
	rest := f.src[at:]
	switch {
	case len(rest) == 0:
		return at, true
	case rest[0] == '\n':
		return at + 1, true
	case bytes.HasPrefix(rest, []byte("\r\n")):
		return at + 2, true
	case rest[0] == '\r':
		return at + 1, true
	case rest[0] != '#':
		return 0, false
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		return at + i + 1, true
	}
	return len(f.src), true
}

// blanks counts the bytes of white space that b begins with, line endings excluded.
func blanks(b []byte) int { return len(b) - len(bytes.TrimLeftFunc(b, isBlank)) }

func isBlank(r rune) bool { return isSpace(r) && r != '\r' }

// isSpace is what godotenv takes for white space within a line.
func isSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\v', '\f', '\r', 0x85, 0xA0:
		return true
	}
	return false
}

func spaceBefore(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return isSpace(r)
}

func keyLength(b []byte) int {
	for i, c := range b {
		if !isWord(c) && c != '.' && c != '-' {
			return i
		}
	}
	return len(b)
}
