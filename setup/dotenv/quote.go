package dotenv

import (
	"bytes"
	"strings"
)

// form is a way to write a value.
type form int

// The forms, from the plainest to the one that no line elsewhere in a broken file can
// make mean something else.
const (
	bare   form = iota
	single      // '…'
	double      // "…"
	padded      // "…" in which no quote stands before a blank or a comment
)

// nothing is empty to every reader: a shell has no argument of that number, godotenv no
// such key. It keeps apart what would mean something else side by side.
const nothing = "${99999}"

// backslashTail ends a value whose last byte is a backslash. No quoted string can: to
// godotenv every quote behind a backslash is escaped. Here it sees a string and a
// comment; a shell sees "…\\" and "#", and then takes the # away again.
func backslashTail(key string) string { return `"#"; ` + key + `=${` + key + `%?}` }

// write returns value as it stands behind "KEY=", if this form can hold it.
func (w form) write(key, value, eol string) (literal string, ok bool) {
	switch w {
	case bare:
		return value, isPlain(value)
	case single:
		ok = !strings.Contains(value, "'") && !strings.Contains(value, "\r\n") && !strings.HasSuffix(value, `\`)
		return "'" + strings.ReplaceAll(value, "\n", eol) + "'", ok
	case double, padded:
		return writeDouble(key, value, eol, w == padded), true
	}
	return "", false
}

// writeDouble writes value with those escapes alone that godotenv and a shell share.
func writeDouble(key, value, eol string, pad bool) string {
	var b strings.Builder
	b.WriteByte('"')
	if pad {
		b.WriteString(nothing)
	}
	for i := range len(value) {
		switch c := value[i]; c {
		case '"', '\\', '$', '`':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			if strings.HasSuffix(value[:i], "\r") { // CRLF is read as LF
				b.WriteString(nothing)
			}
			b.WriteString(eol)
		default:
			b.WriteByte(c)
			if c == '\'' && pad {
				b.WriteString(nothing)
			}
		}
	}
	if strings.HasSuffix(value, `"`) { // godotenv takes away all quotes at the end
		b.WriteString(nothing)
	}
	b.WriteByte('"')
	if strings.HasSuffix(value, `\`) {
		b.WriteString(backslashTail(key))
	}
	return b.String()
}

// isPlain reports whether value means itself to every reader without quotes.
func isPlain(value string) bool {
	for i := range len(value) {
		if c := value[i]; !isWord(c) && !strings.ContainsRune("./:@%+,-", rune(c)) && (c != '=' || i == 0) {
			return false
		}
	}
	return true
}

// forms returns those that Set tries for key, the one in use first unless it is bad at
// the value.
func (f *File) forms(key, value string) []form {
	at, found := f.last[key]
	if !found {
		return []form{bare, single, double, padded}
	}
	l := f.lines[at]
	switch written := f.src[l.valueAt:l.valueEnd]; {
	case bytes.HasPrefix(written, []byte(`"`)) && !strings.HasSuffix(value, `"`):
		return []form{double, single, padded}
	case bytes.HasPrefix(written, []byte(`"`)), bytes.HasPrefix(written, []byte("'")), !l.bareFits():
		return []form{single, double, padded}
	}
	return []form{bare, single, double, padded}
}

// bareFits reports whether a value without quotes can stand before what is behind it:
// godotenv begins the comment at the last " #", and none at the value's very beginning.
func (l line) bareFits() bool { return bytes.IndexByte(l.behind, '#') < 0 }

// portable reports whether a line is written as Set would write it.
func (f *File) portable(l line) bool {
	if l.valueAt != l.keyEnd+1 || f.src[l.keyEnd] != '=' {
		return false
	}
	written := strings.ReplaceAll(string(f.src[l.valueAt:l.valueEnd]), "\r\n", "\n")
	for _, w := range []form{bare, single, double, padded} {
		if literal, ok := w.write(l.key, l.value, "\n"); ok && literal == written {
			return w != bare || l.value != "" && bytes.Count(l.behind, []byte("#")) <= 1 || l.bareFits()
		}
	}
	return false
}
