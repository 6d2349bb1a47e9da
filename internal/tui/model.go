package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/Insights/insightscli/internal/task"
)

// model is the whole of what is on the screen. Update changes it and View only reads it.
type model struct {
	o    Options
	ctx  func() context.Context // of commands; a model outlives no program
	keys keyMap
	now  time.Time

	width, height int
	gen           int // of what is open; answers that belong to another are dropped

	list  runList
	view  *runView // nil: the table
	pager *pager   // before everything else
	form  *form
	ask   dialog // what is being asked or typed; nil: nothing

	note    string // told until the next key
	noteBad bool
	mouse   bool
	done    bool // the run of this process is over and was shown to its end
}

func newModel(ctx context.Context, o Options) *model {
	return &model{o: o, ctx: func() context.Context { return ctx }, keys: newKeyMap(), now: o.Now()}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.tick()}
	if m.o.Run != "" {
		cmds = append(cmds, m.openRun(m.o.Run))
	} else {
		cmds = append(cmds, m.readRuns())
	}
	return tea.Batch(cmds...)
}

// Update implements tea.Model. It hands each message to who knows it.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = size(msg.Width, 80), size(msg.Height, 24)
		return m, m.settled(nil)
	case tea.KeyMsg:
		return m, m.typed(msg)
	case tea.MouseMsg:
		m.mouseEvent(msg)
		return m, m.settled(nil)
	case tickMsg:
		m.now = time.Time(msg)
		return m, tea.Batch(m.tick(), m.refresh())
	case runsMsg:
		m.list.took(msg.runs, msg.err)
	case doneMsg:
		return m, m.settled(m.acted(msg))
	case pagerMsg:
		m.showPager(msg)
	case ofLog:
		if m.view != nil && msg.generation() == m.view.gen {
			return m, m.settled(m.logMsg(msg))
		}
		if late, ok := msg.(openedMsg); ok && late.log != nil {
			_ = late.log.Close() // of a screen that was left meanwhile; it was only read
		}
	}
	return m, nil
}

// size is a length of the terminal; one that tells none, as a serial line, has the usual.
func size(told, usual int) int {
	if told <= 0 {
		return usual
	}
	return told
}

// typed takes keys. What comes faster than it is read comes at once, and is not one key.
func (m *model) typed(k tea.KeyMsg) tea.Cmd {
	if k.Type != tea.KeyRunes || k.Paste || len(k.Runes) < 2 {
		return m.settled(m.key(k))
	}
	var cmds []tea.Cmd
	for _, r := range k.Runes {
		cmds = append(cmds, m.settled(m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: k.Alt})))
	}
	return tea.Batch(cmds...)
}

// ofLog is a message about the log that is open.
type ofLog interface{ generation() int }

// logMsg takes what was read of the log that is on the screen.
func (m *model) logMsg(msg ofLog) tea.Cmd {
	v := m.view
	switch msg := msg.(type) {
	case openedMsg:
		return m.opened(msg)
	case runMsg:
		v.run = msg.run
		if v.log == nil && v.err == "" {
			return m.openLog(v.run)
		}
	case batchMsg:
		return m.scanned(msg)
	case scanTick:
		return m.scanOn()
	case loadedMsg:
		v.loaded(msg.items)
	case foundMsg:
		return m.found(msg)
	}
	return nil
}

// settled arranges the screen after a change and asks for what has to be read for it.
func (m *model) settled(cmd tea.Cmd) tea.Cmd {
	v := m.view
	if v == nil {
		return cmd
	}
	if w, h := m.logSize(); w != v.width || h != v.height {
		v.resize(w, h)
	}
	if m.o.Hosted && v.sum.result != nil && v.follow && m.ask == nil && m.pager == nil && !m.done {
		m.done = true
		return tea.Quit
	}
	return tea.Batch(cmd, m.load())
}

// tell shows a line until the next key.
func (m *model) tell(s string, wrong bool) { m.note, m.noteBad = cleanLine(s), wrong }

// acted tells how an action went.
func (m *model) acted(msg doneMsg) tea.Cmd {
	if msg.err != nil {
		m.tell(msg.what+": "+msg.err.Error(), true)
		return nil
	}
	m.tell(msg.what, false)
	if msg.run != "" {
		m.form = nil
		return m.openRun(string(msg.run))
	}
	return m.refresh()
}

func (m *model) showPager(msg pagerMsg) {
	if msg.err != nil {
		m.tell(msg.err.Error(), true)
		return
	}
	m.note = ""
	if msg.then != nil {
		m.ask = msg.then
		return
	}
	m.pager = msg.pager
}

// leave goes back to the table, or ends the program where there is none.
func (m *model) leave() tea.Cmd {
	if m.o.Run != "" && (m.o.Hosted || m.view == nil || string(m.view.run.ID) == m.firstRun()) {
		return tea.Quit
	}
	cmd := m.closeLog()
	m.view, m.note = nil, ""
	return tea.Batch(cmd, m.readRuns())
}

// firstRun is the run that the program was started with.
func (m *model) firstRun() string { return m.o.first }

// closeLog lets go of the log that is open.
func (m *model) closeLog() tea.Cmd {
	if m.view == nil || m.view.log == nil {
		return nil
	}
	log := m.view.log
	return func() tea.Msg {
		_ = log.Close() // it was only read
		return nil
	}
}

// input is something said to the run on the screen.
func (m *model) input(in task.Input, what string) tea.Cmd {
	in.ID = string(task.NewID())
	run, ctx := m.view.run.ID, m.ctx()
	return func() tea.Msg { return doneMsg{what: what, err: m.o.Actions.Send(ctx, run, in)} }
}
