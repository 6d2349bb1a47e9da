package tui

import (
	tea "github.com/charmbracelet/bubbletea"
)

// key hands a key to whatever has the keyboard.
func (m *model) key(k tea.KeyMsg) tea.Cmd {
	if is(k, m.keys.stop) {
		return m.stop()
	}
	if k.String() == "ctrl+z" && !m.o.Hosted {
		return tea.Suspend
	}
	if m.ask != nil {
		ask := m.ask
		cmd, over := ask.key(m, k)
		if over && m.ask == ask {
			m.ask = nil
		}
		return cmd
	}
	m.note = ""
	switch {
	case m.form != nil:
		return m.formKey(k)
	case m.pager != nil:
		return m.pagerKey(k)
	case is(k, m.keys.help):
		m.pager = newPages("keys", m.keys.helpRows(m.view != nil))
		return nil
	case is(k, m.keys.mouse):
		return m.turnMouse()
	case m.view != nil:
		return m.runKey(k)
	}
	return m.listKey(k)
}

// stop is Ctrl-C: what a signal would do.
func (m *model) stop() tea.Cmd {
	if m.o.Interrupt == nil {
		return tea.Quit
	}
	return func() tea.Msg {
		m.o.Interrupt()
		return nil
	}
}

func (m *model) turnMouse() tea.Cmd {
	if m.mouse = !m.mouse; m.mouse {
		m.tell("the mouse scrolls; select text with shift", false)
		return tea.EnableMouseCellMotion
	}
	m.tell("the mouse is the terminal's", false)
	return tea.DisableMouse
}

func (m *model) formKey(k tea.KeyMsg) tea.Cmd {
	if k.String() == "esc" {
		m.form = nil
		return nil
	}
	if !m.form.key(k) {
		return nil
	}
	n := m.form.value()
	if n.Prompt == "" {
		m.tell("the prompt is empty", true)
		return nil
	}
	m.tell("starting…", false)
	ctx := m.ctx()
	return func() tea.Msg {
		id, err := m.o.Actions.Start(ctx, n)
		if err != nil {
			return doneMsg{what: "start", err: err}
		}
		return doneMsg{what: "run " + id.Short() + " is started", run: id}
	}
}

func (m *model) pagerKey(k tea.KeyMsg) tea.Cmd {
	p, keys := m.pager, m.keys
	_, height := m.bodySize()
	switch {
	case is(k, keys.back), is(k, keys.quit), is(k, keys.help):
		m.pager = nil
	case is(k, keys.up):
		p.scroll(-1, height)
	case is(k, keys.down):
		p.scroll(1, height)
	case is(k, keys.pageUp):
		p.scroll(-height, height)
	case is(k, keys.pageDown):
		p.scroll(height, height)
	case is(k, keys.halfUp):
		p.scroll(-height/2, height)
	case is(k, keys.halfDown):
		p.scroll(height/2, height)
	case is(k, keys.first):
		p.top = 0
	case is(k, keys.last):
		p.scroll(len(p.lines), height)
	case k.String() == "left", k.String() == "h":
		p.left = max(0, p.left-8)
	case k.String() == "right", k.String() == "l":
		p.left += 8
	case is(k, keys.find):
		m.askFindInPager()
	case is(k, keys.again), is(k, keys.against):
		if p.query != "" && !p.hit(p.query, is(k, keys.again)) {
			m.tell("no more matches in this direction", false)
		}
	case is(k, keys.save):
		m.askSave()
	case is(k, keys.copy) && p.body != "":
		return m.copy(p.body)
	}
	return nil
}

func (m *model) listKey(k tea.KeyMsg) tea.Cmd {
	l, keys := &m.list, m.keys
	_, height := m.bodySize()
	switch {
	case is(k, keys.up):
		l.move(-1)
	case is(k, keys.down):
		l.move(1)
	case is(k, keys.pageUp), is(k, keys.halfUp):
		l.move(-height / 2)
	case is(k, keys.pageDown), is(k, keys.halfDown):
		l.move(height / 2)
	case is(k, keys.first):
		l.cursor = 0
	case is(k, keys.last):
		l.move(len(l.shown))
	case is(k, keys.sort):
		l.sort = (l.sort + 1) % len(sortNames())
		l.refresh()
	case is(k, keys.reverse):
		l.down = !l.down
		l.refresh()
	case is(k, keys.filterRuns):
		m.askWords()
	case is(k, keys.create):
		m.form = newForm(m.o.Repo)
	case is(k, keys.prune):
		return m.askPrune()
	case is(k, keys.back) && l.query != "":
		l.query = ""
		l.refresh()
	case is(k, keys.quit):
		return tea.Quit
	default:
		return m.selectedKey(k)
	}
	return nil
}

// selectedKey are the keys that need a run under the cursor.
func (m *model) selectedKey(k tea.KeyMsg) tea.Cmd {
	r := m.list.selected()
	switch {
	case r == nil:
	case is(k, m.keys.open):
		return m.openRun(string(r.ID))
	case is(k, m.keys.cancel):
		m.askCancel(*r)
	}
	return nil
}

// askWords filters the table while it is typed.
func (m *model) askWords() {
	old := m.list.query
	set := func(m *model, s string) {
		m.list.query = s
		m.list.refresh()
	}
	change := func(m *model, s string) (none tea.Cmd) {
		set(m, s)
		return none
	}
	m.ask = &typing{
		editor: editor{before: old}, label: "filter: ", changed: change, enter: change,
		leave: func(m *model) { set(m, old) },
	}
}

// runKey are the keys of a run: first those that move.
func (m *model) runKey(k tea.KeyMsg) tea.Cmd {
	v, keys := m.view, m.keys
	switch {
	case is(k, keys.up):
		v.move(-1)
	case is(k, keys.down):
		v.move(1)
	case is(k, keys.pageUp):
		v.page(-v.height)
	case is(k, keys.pageDown):
		v.page(v.height)
	case is(k, keys.halfUp):
		v.page(-v.height / 2)
	case is(k, keys.halfDown):
		v.page(v.height / 2)
	case is(k, keys.first):
		v.ends(false)
	case is(k, keys.last):
		v.ends(true)
	case is(k, keys.next):
		v.item(true)
	case is(k, keys.prev):
		v.item(false)
	case is(k, keys.fold):
		v.toggle()
	case is(k, keys.fault), is(k, keys.faultBack):
		if !v.fault(is(k, keys.fault)) {
			m.tell("no more errors in this direction", false)
		}
	case is(k, keys.again), is(k, keys.against):
		m.nextMatch(is(k, keys.again))
	default:
		return m.viewKey(k)
	}
	return nil
}

func (m *model) nextMatch(forth bool) {
	s := &m.view.search
	if s.query == "" {
		m.tell("nothing is searched for; / begins", false)
		return
	}
	s.toward = 1
	if !forth {
		s.toward = -1
	}
	m.goToHit(forth, s.pos >= m.view.read)
}

// viewKey are the keys that show something else.
func (m *model) viewKey(k tea.KeyMsg) tea.Cmd {
	v, keys := m.view, m.keys
	switch {
	case is(k, keys.find):
		m.askFind()
	case is(k, keys.kinds):
		m.askKinds()
	case is(k, keys.raw):
		f := v.filter
		f.raw = !f.raw
		v.refilter(f)
		if q := v.search.query; q != "" { // other things match
			v.search.toward = 0
			return m.lookFor(q)
		}
	case is(k, keys.about):
		m.pager = newPages("about run "+v.run.ID.Short(), m.aboutRows(max(20, m.width-2)))
	case is(k, keys.diff):
		return m.readDiff()
	case is(k, keys.copy):
		return m.copy(v.selected())
	case is(k, keys.save):
		m.askSave()
	case is(k, keys.back):
		if v.search.query != "" {
			v.seek("")
			return nil
		}
		return m.leaveRun(false)
	case is(k, keys.quit):
		return m.leaveRun(true)
	default:
		return m.sayKey(k)
	}
	return nil
}
