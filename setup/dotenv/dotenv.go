// Package dotenv edits .env files and leaves alone what it was not asked to change:
// comments, order, blank lines, export, quoting, line endings, a byte order mark, a
// missing final newline and lines that it cannot read stay byte for byte as they are.
//
// It reads a file as github.com/joho/godotenv does, except where that loses text: an
// unknown $NAME without braces stays, unknown escapes keep their backslash, a comment
// begins at the first " #", one bad line does not hide the others, and a quoted value may
// end with a backslash. It writes a value so that godotenv, a POSIX shell that sources
// the file, and this package all read exactly that value, whatever it is, if it holds no
// NUL. Three things are the shell's own: it gets "\r" behind every value of a file with
// CRLF line endings; one bad line makes it give up; and with "set -u" it refuses a value
// with a CRLF, and one that holds a single quote and ends with a double quote.
//
// [Edit] changes a file on disk: under a lock, at once or not at all. Nothing here reads
// the environment, prints or asks.
package dotenv

import (
	"bytes"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// File is the text of a .env file. It is not safe for concurrent use.
type File struct {
	src     []byte
	lines   []line
	last    map[string]int // key → index of the line whose value counts
	heading string         // stands before the next new key
	orig    *File          // as it was parsed; nil in orig itself
}

const mark = "\ufeff" // the byte order mark that some editors put first

// Parse reads src. There is no text that it refuses: see [File.Problems].
func Parse(src []byte) *File {
	f := scan(slices.Clone(src))
	f.orig = scan(f.src)
	return f
}

// Bytes returns the text.
func (f *File) Bytes() []byte { return slices.Clone(f.src) }

// Changed reports whether the text differs from what was parsed.
func (f *File) Changed() bool { return !bytes.Equal(f.src, f.orig.src) }

// Get returns the value of key: the last assignment counts.
func (f *File) Get(key string) (value string, ok bool) {
	i, ok := f.last[key]
	if !ok {
		return "", false
	}
	return f.lines[i].value, true
}

// Line returns the number of the line where the assignment of key that counts begins,
// from 1; 0 if there is none.
func (f *File) Line(key string) int {
	if i, ok := f.last[key]; ok {
		return f.lines[i].number
	}
	return 0
}

// Keys returns every key once, in the order of the file.
func (f *File) Keys() []string {
	var keys []string
	seen := map[string]bool{}
	for _, l := range f.lines {
		if l.key != "" && !seen[l.key] {
			seen[l.key] = true
			keys = append(keys, l.key)
		}
	}
	return keys
}

// Problems returns the numbers of the lines that cannot be read as KEY=VALUE.
func (f *File) Problems() []int {
	var numbers []int
	for _, l := range f.lines {
		if l.bad {
			numbers = append(numbers, l.number)
		}
	}
	return numbers
}

// Heading puts text as a comment, with a blank line above it, before the next key that
// Set appends. Without such a key it has no effect.
func (f *File) Heading(text string) { f.heading = text }

// Set gives key a value. The assignment that counts is changed in place, and what stands
// before the key and behind the value stays; a new key becomes the last line. A line that
// says the value already, in a form that every reader understands, stays as it is.
func (f *File) Set(key, value string) error {
	if !isName(key) {
		return errs.New("dotenv.Set", errs.Usage, "use letters, digits and _", "%q is no name of a variable", key)
	}
	if strings.ContainsRune(value, 0) {
		return errs.New("dotenv.Set", errs.Usage, "", "the value of %s holds a NUL byte, which no variable can", key)
	}
	at, found := f.last[key]
	if found && f.lines[at].value == value && f.portable(f.lines[at]) {
		return nil
	}
	for _, form := range f.forms(key, value) {
		literal, ok := form.write(key, value, f.lineEnd())
		if !ok {
			continue
		}
		edited := f.with(key, literal)
		if got, _ := edited.Get(key); got == value && edited.keeps(f, key) {
			edited.orig = f.orig
			if found {
				edited.heading = f.heading
			}
			*f = *edited
			return nil
		}
	}
	return errs.New("dotenv.Set", errs.Conflict, "close the quotes of every value",
		"%s cannot be set: another line with an open quote would swallow it", key)
}

// with returns the file in which key has the literal.
func (f *File) with(key, literal string) *File {
	at, found := f.last[key]
	if !found {
		return scan(slices.Concat(f.src, []byte(f.gap()+key+"="+literal+f.lineEnd())))
	}
	l := f.lines[at]
	return scan(slices.Concat(f.src[:l.keyEnd], []byte("="+literal), f.src[l.valueEnd:]))
}

// gap is what must stand between the last line and a new one.
func (f *File) gap() string {
	var b strings.Builder
	eol := f.lineEnd()
	blank := len(f.lines) == 0
	if !blank {
		l := f.lines[len(f.lines)-1]
		text := f.text(l)
		blank = text == ""
		if f.src[l.end-1] != '\n' {
			b.WriteString(eol)
		}
		// To a shell a backslash there means that the next line goes on.
		if strings.HasSuffix(text, `\`) && f.heading == "" {
			b.WriteString(eol)
		}
	}
	if f.heading == "" {
		return b.String()
	}
	if !blank {
		b.WriteString(eol)
	}
	for text := range strings.Lines(f.heading) {
		b.WriteString(strings.TrimRight("# "+strings.TrimSpace(text), " ") + eol)
	}
	return b.String()
}

// keeps reports whether every line of old but the one of key is in f what it was.
func (f *File) keeps(old *File, key string) bool {
	at, found := old.last[key]
	if len(f.lines) < len(old.lines) || found && len(f.lines) != len(old.lines) || found && f.last[key] != at {
		return false
	}
	for i, l := range old.lines {
		if n := f.lines[i]; (!found || i != at) && (n.key != l.key || n.bad != l.bad || f.text(n) != old.text(l)) {
			return false
		}
	}
	return true
}

// lineEnd is how the file ends its lines; the last one decides.
func (f *File) lineEnd() string {
	if i := bytes.LastIndexByte(f.src, '\n'); i > 0 && f.src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// text is a line without its ending.
func (f *File) text(l line) string { return strings.TrimRight(string(f.src[l.start:l.end]), "\r\n") }

// isName reports whether key can name a variable in a shell.
func isName(key string) bool {
	for i, c := range []byte(key) {
		if !isWord(c) || i == 0 && isDigit(c) {
			return false
		}
	}
	return key != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
