package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// face is how text looks. Only the eight colours of the terminal's own palette are used,
// and those attributes that every terminal has.
type face uint8

const (
	plain face = iota
	dim
	bold
	italic
	code
	heading
	accent
	good
	bad
	warn
	added
	removed
	bar   // of our own lines at the top and the bottom
	found // what was searched for
	faces
)

// sgr are the parameters of a face: with colours, and without.
func (f face) sgr(color bool) string {
	table := [faces][2]string{
		dim: {"2", "2"}, bold: {"1", "1"}, italic: {"3", "3"}, code: {"36", "1"}, heading: {"1;36", "1;4"},
		accent: {"34", "1"}, good: {"32", ""}, bad: {"31", "1"}, warn: {"33", "1"},
		added: {"32", ""}, removed: {"31", ""}, bar: {"7", "7"}, found: {"30;43", "7"},
	}
	if color {
		return table[f][0]
	}
	return table[f][1]
}

// painter turns rows into what the terminal gets.
type painter struct {
	color bool
	query string // what is marked; empty: nothing
}

// paint is a row of at most so many cells.
func (p painter) paint(r row, width int) string {
	r = r.clip(width)
	if p.query != "" {
		r = mark(r, p.query)
	}
	var b strings.Builder
	for _, s := range r {
		params := s.face.sgr(p.color)
		if params == "" || s.text == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + params + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}

// minLeft is how much of the left of a bar is shown in any case.
const minLeft = 12

// bar is a row on the full width in reverse, for our own lines.
func (p painter) bar(left, right string, width int) string {
	room := width - cellWidth(right)
	if room < minLeft {
		room, right = width, ""
	}
	return p.paint(text(pad(left, room)+right, bar), width)
}

// mark gives what was found its face.
func mark(r row, query string) row {
	line := r.String()
	at := matches(line, query)
	if len(at) == 0 {
		return r
	}
	var out row
	pos := 0
	for _, s := range r {
		for rest := s.text; rest != ""; {
			n, f := len(rest), s.face
			for _, m := range at {
				switch {
				case m[1] <= pos || m[0] >= pos+n:
					continue
				case m[0] > pos:
					n = m[0] - pos
				default:
					n, f = min(n, m[1]-pos), found
				}
				break
			}
			out = append(out, span{rest[:n], f})
			pos, rest = pos+n, rest[n:]
		}
	}
	return out
}

// matches returns where a query stands in a line. One without capitals finds both.
func matches(line, query string) [][2]int {
	if query == "" {
		return nil
	}
	var at [][2]int
	exact := strings.IndexFunc(query, unicode.IsUpper) >= 0
	for i := 0; i+1 <= len(line); {
		n := hasPrefix(line[i:], query, exact)
		if n > 0 {
			at = append(at, [2]int{i, i + n})
			i += n
			continue
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		i += size
	}
	return at
}

// hasPrefix returns how long the query is at the beginning of s, 0 if it is not there.
func hasPrefix(s, query string, exact bool) int {
	i := 0
	for _, q := range query {
		if i >= len(s) {
			return 0
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != q && (exact || unicode.ToLower(r) != q) {
			return 0
		}
		i += size
	}
	return i
}
