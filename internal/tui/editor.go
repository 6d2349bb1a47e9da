package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// maxTyped bounds what can be typed or pasted, in bytes.
const maxTyped = 256 << 10

// editor is a text that is being typed: what stands before the cursor and behind it.
type editor struct {
	before, after string
	multi         bool // more than one line
}

func (e *editor) value() string { return e.before + e.after }

// key takes a key; one that means nothing in a text is dropped.
func (e *editor) key(k tea.KeyMsg) {
	switch k.String() {
	case "left", "ctrl+b":
		c := lastCluster(e.before)
		e.before, e.after = e.before[:len(e.before)-len(c)], c+e.after
	case "right", "ctrl+f":
		if e.after != "" {
			c, _ := cluster(e.after)
			e.before, e.after = e.before+c, e.after[len(c):]
		}
	case "home", "ctrl+a":
		e.before, e.after = "", e.value()
	case "end", "ctrl+e":
		e.before, e.after = e.value(), ""
	case "backspace", "ctrl+h":
		e.before = e.before[:len(e.before)-len(lastCluster(e.before))]
	case "delete":
		if e.after != "" {
			c, _ := cluster(e.after)
			e.after = e.after[len(c):]
		}
	case "ctrl+u":
		e.before = ""
	case "ctrl+k":
		e.after = ""
	case "ctrl+w":
		s := strings.TrimRight(e.before, " ")
		e.before = s[:strings.LastIndexByte(s, ' ')+1]
	case "alt+enter", "ctrl+j":
		if e.multi {
			e.insert("\n")
		}
	default:
		if (k.Type != tea.KeyRunes && k.Type != tea.KeySpace) || k.Alt && !k.Paste {
			return
		}
		e.insert(string(k.Runes))
	}
}

func (e *editor) insert(s string) {
	s = clean(s)
	if !e.multi {
		s = strings.NewReplacer("\n", " ", "\t", " ").Replace(s)
	}
	if len(e.before)+len(e.after)+len(s) <= maxTyped {
		e.before += s
	}
}

// lastCluster is the last character of s.
func lastCluster(s string) string {
	from := max(0, len(s)-256) // none is that long
	for from > 0 && s[from]&0xc0 == 0x80 {
		from--
	}
	last := ""
	for rest := s[from:]; rest != ""; {
		last, _ = cluster(rest)
		rest = rest[len(last):]
	}
	return last
}

// rows is the text behind a label, of which at most so many rows around the cursor are
// shown. The cursor is a character in reverse.
func (e *editor) rows(label string, width, most int) []row {
	inset := cellWidth(label)
	if inset*2 > width {
		label, inset = "", 0
	}
	under, rest := " ", ""
	if e.after != "" {
		c, _ := cluster(e.after)
		if rest = e.after[len(c):]; c == "\n" {
			rest = e.after
		} else {
			under = c
		}
	}
	var rows []row
	at := 0
	put := func(r row) {
		for _, part := range r.wrap(max(1, width-inset), nil) {
			for _, s := range part {
				if s.face == bar {
					at = len(rows)
				}
			}
			rows = append(rows, part)
		}
	}
	pre := strings.Split(e.before, "\n")
	post := strings.Split(rest, "\n")
	for _, l := range pre[:len(pre)-1] {
		put(text(l, plain))
	}
	put(row{{pre[len(pre)-1], plain}, {under, bar}, {post[0], plain}})
	for _, l := range post[1:] {
		put(text(l, plain))
	}
	first := max(0, min(at-most+1, len(rows)-most))
	rows = rows[first:min(len(rows), first+most)]
	return prefixed(rows, span{label, accent}, span{strings.Repeat(" ", inset), plain})
}
