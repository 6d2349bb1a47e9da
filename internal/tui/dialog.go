package tui

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/Insights/insightscli/internal/task"
)

// dialog is something that is asked or typed at the bottom of the screen. key returns what
// is to be done, and whether the dialog is over.
type dialog interface {
	key(m *model, k tea.KeyMsg) (cmd tea.Cmd, over bool)
	rows(width int) []row
}

// typing is a text that is being typed.
type typing struct {
	editor
	label   string
	changed func(m *model, s string) tea.Cmd // at every key; nil: nothing
	enter   func(m *model, s string) tea.Cmd
	leave   func(m *model) // esc; nil: nothing
}

func (t *typing) key(m *model, k tea.KeyMsg) (tea.Cmd, bool) {
	switch {
	case k.String() == "esc":
		if t.leave != nil {
			t.leave(m)
		}
		return nil, true
	case k.String() == "enter":
		return t.enter(m, t.value()), true
	}
	before := t.value()
	if t.editor.key(k); t.changed != nil && t.value() != before {
		return t.changed(m, t.value()), false
	}
	return nil, false
}

func (t *typing) rows(width int) []row { return t.editor.rows(t.label, width, 6) }

// question is one that only y answers with yes.
type question struct {
	text string
	yes  func(m *model) tea.Cmd
}

func (q *question) key(m *model, k tea.KeyMsg) (tea.Cmd, bool) {
	if s := k.String(); s == "y" || s == "Y" {
		return q.yes(m), true
	}
	return nil, true
}

func (q *question) rows(width int) []row {
	return row{{cleanLine(q.text), warn}, {" [y/N]", plain}}.wrap(width, nil)
}

// choice is one of several things.
type choice struct {
	title   string
	options []string
	ticks   []bool // nil: one is chosen; else each is turned on and off
	at      int
	done    func(m *model, at int, ticks []bool) tea.Cmd
}

func (c *choice) key(m *model, k tea.KeyMsg) (tea.Cmd, bool) {
	s := k.String()
	switch {
	case s == "esc" || s == "q":
		return nil, true
	case s == "up" || s == "k" || s == "shift+tab":
		c.at = max(0, c.at-1)
	case s == "down" || s == "j" || s == "tab":
		c.at = min(len(c.options)-1, c.at+1)
	case s == " " && c.ticks != nil:
		c.ticks[c.at] = !c.ticks[c.at]
	case s == "a" && c.ticks != nil:
		all := c.ticks[c.at]
		for i := range c.ticks {
			c.ticks[i] = !all
		}
	case s == "enter":
		return c.done(m, c.at, c.ticks), true
	case len(s) == 1 && s[0] >= '1' && s[0] <= '9' && c.ticks == nil && int(s[0]-'1') < len(c.options):
		return c.done(m, int(s[0]-'1'), nil), true
	}
	return nil, false
}

func (c *choice) rows(width int) []row {
	rows := text(cleanLine(c.title), bold).wrap(width, nil)
	for i, o := range c.options {
		sign, f := "  ", plain
		if i == c.at {
			sign, f = "> ", bold
		}
		name := itoa(i+1) + " "
		if c.ticks != nil {
			if name = "[ ] "; c.ticks[i] {
				name = "[✓] "
			}
		}
		rows = append(rows, row{{sign + name, accent}, {cleanLine(o), f}}.clip(width))
	}
	return rows
}

// askFind searches while it is typed.
func (m *model) askFind() {
	v := m.view
	from, follow := v.cursor, v.follow
	m.ask = &typing{
		label: "search: ",
		changed: func(m *model, s string) tea.Cmd {
			v.cursor, v.search.toward = from, 1
			if v.follow = false; s == "" {
				v.search.toward = 0
			}
			return m.lookFor(s)
		},
		enter: func(m *model, s string) tea.Cmd {
			switch n := v.search.hits.count(); {
			case s == "":
				v.seek("")
			case n == 0 && v.search.toward == 0:
				m.tell(fmt.Sprintf("%q was not found", s), true)
			case v.search.toward == 0:
				m.tell(fmt.Sprintf("%d events match so far; n and N go through them", n), false)
			}
			return nil
		},
		leave: func(*model) {
			v.seek("")
			v.cursor, v.follow = from, follow
		},
	}
}

// askFindInPager searches a pager.
func (m *model) askFindInPager() {
	m.ask = &typing{label: "search: ", enter: func(m *model, s string) tea.Cmd {
		m.pager.query = s
		if s != "" && !m.pager.hit(s, true) && !m.pager.hit(s, false) {
			m.tell(fmt.Sprintf("%q was not found", s), true)
		}
		return nil
	}}
}

// askSave saves the log, or what the pager shows.
func (m *model) askSave() {
	name, body := "", io.Reader(nil)
	switch {
	case m.pager != nil && m.pager.name != "":
		name, body = m.pager.name, strings.NewReader(m.pager.body)
	case m.pager == nil && m.view != nil && m.view.log != nil:
		name, body = "run-"+m.view.run.ID.Short()+".jsonl", io.NewSectionReader(m.view.log, 0, m.view.read)
	default:
		return
	}
	if m.o.Dir != "" {
		name = filepath.Join(m.o.Dir, name)
	}
	m.ask = &typing{editor: editor{before: name}, label: "save as: ", enter: func(_ *model, path string) tea.Cmd {
		if path == "" {
			return nil
		}
		return saveTo(path, body)
	}}
}

// askSay says something to the agent.
func (m *model) askSay(kind task.InputKind) {
	label := "message: "
	if kind == task.InputSteer {
		label = "steer: "
	}
	m.ask = &typing{editor: editor{multi: true}, label: label, enter: func(m *model, s string) tea.Cmd {
		if strings.TrimSpace(s) == "" {
			return nil
		}
		return m.input(task.Input{Kind: kind, Text: s}, "sent")
	}}
}

// askAnswer answers what the agent asks for.
func (m *model) askAnswer() {
	p := m.view.asking()
	if p == nil {
		m.tell("the agent asks for nothing", false)
		return
	}
	c := &choice{title: "The agent asks for leave: " + p.ToolCall.Title}
	for _, o := range p.Options {
		c.options = append(c.options, o.Name)
	}
	id, options := p.RequestID, p.Options
	c.done = func(m *model, at int, _ []bool) tea.Cmd {
		if at >= len(options) {
			return nil
		}
		return m.input(task.Input{Kind: task.InputPermission, Name: id, Value: options[at].ID}, "answered")
	}
	m.ask = c
}

// askKinds chooses what is shown.
func (m *model) askKinds() {
	c := &choice{title: "What is shown (space: on or off, a: all, enter: done)"}
	for k := step; k < quiet; k++ {
		c.options = append(c.options, k.String())
		c.ticks = append(c.ticks, !m.view.filter.hide[k])
	}
	c.done = func(m *model, _ int, ticks []bool) tea.Cmd {
		f := m.view.filter
		for i, on := range ticks {
			f.hide[step+kind(i)] = !on
		}
		m.view.refilter(f)
		return nil
	}
	m.ask = c
}

// askCancel ends a run.
func (m *model) askCancel(r Run) {
	if r.State.Terminal() {
		m.tell("run "+r.ID.Short()+" is over", false)
		return
	}
	m.ask = &question{text: "Cancel run " + r.ID.Short() + " (" + r.Title + ")?", yes: func(m *model) tea.Cmd {
		ctx := m.ctx()
		return func() tea.Msg {
			return doneMsg{what: "run " + r.ID.Short() + " is being cancelled", err: m.o.Actions.Cancel(ctx, r.ID)}
		}
	}}
}

// askPrune tells what would be removed, and removes it.
func (m *model) askPrune() tea.Cmd {
	ctx := m.ctx()
	m.tell("looking for what runs left behind…", false)
	return func() tea.Msg {
		found, err := m.o.Actions.Prune(ctx, true)
		if err != nil {
			return pagerMsg{err: err}
		}
		if len(found) == 0 {
			return doneMsg{what: "there is nothing to remove"}
		}
		text := fmt.Sprintf("Remove %d things: %s?", len(found), strings.Join(found[:min(len(found), 20)], "; "))
		return pagerMsg{then: &question{text: text, yes: func(m *model) tea.Cmd {
			return func() tea.Msg {
				gone, err := m.o.Actions.Prune(ctx, false)
				return doneMsg{what: fmt.Sprintf("removed %d things", len(gone)), err: err}
			}
		}}}
	}
}
