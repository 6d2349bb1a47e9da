package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/Insights/insightscli/internal/render"
)

// tabStop is how far tabs reach.
const tabStop = 4

// maxMarks is how many combining marks one character may carry: more are of no language,
// and run over the lines around them.
const maxMarks = 8

// span is text in one face.
type span struct {
	text string
	face face
}

// row is one line of a screen, without tabs and line ends.
type row []span

// text is a row of one face.
func text(s string, f face) row { return row{{s, f}} }

// String is the row without its faces.
func (r row) String() string {
	if len(r) == 1 {
		return r[0].text
	}
	var b strings.Builder
	for _, s := range r {
		b.WriteString(s.text)
	}
	return b.String()
}

// width is how many cells the row takes.
func (r row) width() int {
	n := 0
	for _, s := range r {
		n += cellWidth(s.text)
	}
	return n
}

// clean returns text that is safe to measure and to show: lines and tabs stay, sequences,
// control characters and what only changes how other characters look go.
func clean(s string) string {
	if isPlain(s) {
		return s
	}
	s = render.CleanText(s)
	if !hasOther(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for _, r := range s {
		switch {
		case r == '\u2028', r == '\u2029', r == '\u0085':
			b.WriteByte('\n')
			marks = 0
			continue
		case unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c':
			continue
		case unicode.Is(unicode.M, r):
			if marks++; marks > maxMarks {
				continue
			}
		default:
			marks = 0
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cleanLine is clean for what is one line.
func cleanLine(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(s)))
}

func isPlain(s string) bool {
	for i := range len(s) {
		if b := s[i]; (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

func hasOther(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// cluster returns the first character of s as people count them, and its cells.
func cluster(s string) (string, int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], 1
	}
	c, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	if c == "" { // never, but a loop over nothing has no end
		return s[:1], 1
	}
	return c, min(w, 2)
}

// cellWidth is how many cells a text without control characters takes.
func cellWidth(s string) int {
	n := 0
	for s != "" {
		c, w := cluster(s)
		n += w
		s = s[len(c):]
	}
	return n
}

// cut returns as much of s as fits, with an ellipsis where something is missing.
func cut(s string, width int) string {
	if len(s) <= width && !hasOther(s) || cellWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	n, col := 0, 0
	for rest := s; rest != ""; {
		c, w := cluster(rest)
		if col+w > width-1 {
			break
		}
		n, col, rest = n+len(c), col+w, rest[len(c):]
	}
	return s[:n] + "…"
}

// pad returns s cut or filled up to exactly so many cells.
func pad(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", max(0, width-cellWidth(s)))
}

// clip returns as much of the row as fits.
func (r row) clip(width int) row {
	var out row
	for _, s := range r {
		w := cellWidth(s.text)
		if w > width {
			return append(out, span{cut(s.text, width), s.face})
		}
		out = append(out, s)
		width -= w
	}
	return out
}

// cell is one character of a row that is being broken.
type cell struct {
	text string
	w    int
	face face
}

// cells takes a row apart; tabs become spaces.
func (r row) cells() []cell {
	var out []cell
	col := 0
	for _, s := range r {
		for rest := s.text; rest != ""; {
			c, w := cluster(rest)
			rest = rest[len(c):]
			if c == "\t" {
				for range tabStop - col%tabStop {
					out = append(out, cell{" ", 1, s.face})
					col++
				}
				continue
			}
			out = append(out, cell{c, w, s.face})
			col += w
		}
	}
	return out
}

// join puts cells together again.
func join(cells []cell) row {
	var out row
	for i := 0; i < len(cells); {
		j, f := i, cells[i].face
		var b strings.Builder
		for j < len(cells) && cells[j].face == f {
			b.WriteString(cells[j].text)
			j++
		}
		out = append(out, span{b.String(), f})
		i = j
	}
	return out
}

// wrap breaks a row between words, or within one that is longer than a line. What
// follows the first line begins with indent.
func (r row) wrap(width int, indent row) []row {
	if len(r) == 0 {
		return []row{nil}
	}
	if len(r) == 1 && len(r[0].text) <= width && isPlain(r[0].text) && !strings.Contains(r[0].text, "\t") {
		return []row{r}
	}
	inset := indent.width()
	if inset*2 > width {
		indent, inset = nil, 0
	}
	cells := r.cells()
	var rows []row
	for room := width; ; room = width - inset {
		n, skip := breakAt(cells, room)
		line := join(cells[:n])
		if len(rows) > 0 {
			line = append(append(row{}, indent...), line...)
		}
		rows = append(rows, line)
		if cells = cells[n+skip:]; len(cells) == 0 {
			return rows
		}
	}
}

// breakAt finds how many cells go on a line of that room, and how many spaces behind them
// are not shown. It takes one at least: a wide character in one column is left to the
// painter, which clips it.
func breakAt(cells []cell, room int) (n, skip int) {
	col, space := 0, -1
	for i, c := range cells {
		if col += c.w; col > room {
			if c.text == " " {
				return max(i, 1), 1
			}
			if space > 0 {
				return space, 1
			}
			return max(i, 1), 0
		}
		if c.text == " " {
			space = i
		}
	}
	return len(cells), 0
}

// lines breaks cleaned text into rows of one face.
func lines(s string, f face, width int) []row {
	var rows []row
	for _, l := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		rows = append(rows, row{{l, f}}.wrap(width, nil)...)
	}
	return rows
}

// prefixed puts first before the first row and rest before the others.
func prefixed(rows []row, first, rest span) []row {
	for i, r := range rows {
		p := rest
		if i == 0 {
			p = first
		}
		rows[i] = append(row{p}, r...)
	}
	return rows
}
