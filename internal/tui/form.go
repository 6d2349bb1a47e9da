package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// form asks for a new run.
type form struct {
	fields []formField
	at     int // the last place is the button
}

type formField struct {
	name    string
	hint    string
	editor  editor
	options []string // one of these instead of a text
	chosen  int
}

func newForm(repo string) *form {
	return &form{fields: []formField{
		{name: "Prompt", hint: "what the agent is to do; with the agent exec a command line", editor: editor{multi: true}},
		{name: "Agent", hint: "left and right", options: []string{"claude", "codex", "exec"}},
		{name: "Repository", hint: "a path, org/repo or a URL; empty: none", editor: editor{before: repo}},
		{name: "Branch", hint: "empty: the repository's own", editor: editor{}},
	}}
}

// value is what the form asks for.
func (f *form) value() NewRun {
	return NewRun{
		Prompt: f.fields[0].editor.value(), Agent: f.fields[1].options[f.fields[1].chosen],
		Repo: strings.TrimSpace(f.fields[2].editor.value()), Branch: strings.TrimSpace(f.fields[3].editor.value()),
	}
}

// key takes a key; start is set when the run is to be started.
func (f *form) key(k tea.KeyMsg) (start bool) {
	s := k.String()
	switch {
	case s == "ctrl+s", s == "enter" && f.at == len(f.fields):
		return true
	case s == "tab", s == "down", s == "enter" && !f.multi():
		f.at = min(f.at+1, len(f.fields))
	case s == "shift+tab", s == "up":
		f.at = max(f.at-1, 0)
	case f.at == len(f.fields):
	case f.fields[f.at].options != nil:
		fd := &f.fields[f.at]
		switch n := len(fd.options); s {
		case "left", "h":
			fd.chosen = (fd.chosen + n - 1) % n
		case "right", "l", " ":
			fd.chosen = (fd.chosen + 1) % n
		}
	case s == "enter":
		f.fields[f.at].editor.insert("\n")
	default:
		f.fields[f.at].editor.key(k)
	}
	return false
}

func (f *form) multi() bool { return f.at < len(f.fields) && f.fields[f.at].editor.multi }

// rows lay the form out.
func (f *form) rows(width, height int) []row {
	var rows []row
	here := 0
	for i := range f.fields {
		fd := &f.fields[i]
		face := dim
		if i == f.at {
			face, here = heading, len(rows)
		}
		rows = append(rows, row{{fd.name, face}, {"  " + fd.hint, dim}}.clip(width))
		switch {
		case fd.options != nil:
			var r row
			for j, o := range fd.options {
				if j == fd.chosen {
					r = append(r, span{"[" + o + "] ", bold})
				} else {
					r = append(r, span{" " + o + "  ", dim})
				}
			}
			rows = append(rows, r)
		case i == f.at:
			rows = append(rows, fd.editor.rows("", width, 8)...)
		default:
			rows = append(rows, lines(fd.editor.value(), plain, width)[:1]...)
		}
		rows = append(rows, nil)
	}
	button := row{{" Start ", dim}, {"  (or ctrl+s; esc leaves)", dim}}
	if f.at == len(f.fields) {
		button[0].face, here = bar, len(rows)
	}
	rows = append(rows, button)
	first := max(0, min(here-height/2, len(rows)-height))
	return rows[first:]
}
