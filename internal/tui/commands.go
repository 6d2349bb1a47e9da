package tui

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// tickEvery is how often times and the table are brought up to date, pollEvery how often
	// a live log is looked at for more: 25 frames a second are enough to read.
	tickEvery = time.Second
	pollEvery = 40 * time.Millisecond
	// firstTail is how much of the end of a log is read for the first frame.
	firstTail = 256 << 10
	// loadMost is how much is read at once for the screen.
	loadMost = 16 << 20
)

type (
	tickMsg time.Time
	runsMsg struct {
		runs []Run
		err  error
	}
	doneMsg struct {
		what string
		err  error
		run  task.ID // that was started
	}
	pagerMsg struct {
		pager *pager
		then  dialog // what is asked instead
		err   error
	}
	openedMsg struct {
		gen  int
		run  Run
		log  Log
		size int64
		tail index
		err  error
	}
	runMsg struct {
		gen int
		run Run
	}
	batchMsg struct {
		gen   int
		batch batch
		size  int64
		err   error
	}
	scanTick  struct{ gen int }
	loadedMsg struct {
		gen   int
		items []item
	}
)

func (m openedMsg) generation() int { return m.gen }
func (m runMsg) generation() int    { return m.gen }
func (m batchMsg) generation() int  { return m.gen }
func (m scanTick) generation() int  { return m.gen }
func (m loadedMsg) generation() int { return m.gen }
func (m foundMsg) generation() int  { return m.gen }

func (m *model) tick() tea.Cmd {
	return m.o.after(tickEvery, func() tea.Msg { return tickMsg(m.o.Now()) })
}

// refresh reads what the screen shows beside the log.
func (m *model) refresh() tea.Cmd {
	if m.view == nil {
		return m.readRuns()
	}
	if m.view.run.ID == "" || m.view.over() && m.view.run.State.Terminal() {
		return nil
	}
	gen, id, ctx := m.view.gen, m.view.run.ID, m.ctx()
	return func() tea.Msg {
		run, err := m.o.Source.Run(ctx, string(id))
		if err != nil {
			return nil // the next second it is asked again
		}
		return runMsg{gen, run}
	}
}

func (m *model) readRuns() tea.Cmd {
	ctx := m.ctx()
	return func() tea.Msg {
		runs, err := m.o.Source.Runs(ctx)
		return runsMsg{runs, err}
	}
}

// openRun shows a run.
func (m *model) openRun(name string) tea.Cmd {
	closing := m.closeLog()
	m.gen++
	m.view = newRunView(m.gen, Run{Title: "run " + name})
	gen, ctx := m.gen, m.ctx()
	if first := m.o.First; first != nil && string(first.ID) == name {
		m.view.run = *first
		return func() tea.Msg { return m.open(gen, *first) }
	}
	return tea.Batch(closing, func() tea.Msg {
		run, err := m.o.Source.Run(ctx, name)
		if err != nil {
			return openedMsg{gen: gen, err: err}
		}
		return m.open(gen, run)
	})
}

// openLog opens the log of a run that had none a moment ago.
func (m *model) openLog(run Run) tea.Cmd {
	gen := m.view.gen
	return func() tea.Msg { return m.open(gen, run) }
}

// open opens a log and reads its end. It is called by commands.
func (m *model) open(gen int, run Run) tea.Msg {
	log, err := m.o.Source.Open(m.ctx(), run.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return openedMsg{gen: gen, run: run}
	}
	if err != nil {
		return openedMsg{gen: gen, run: run, err: err}
	}
	msg := openedMsg{gen: gen, run: run, log: log}
	if msg.size, err = log.Size(); err == nil && msg.size > scanStep {
		msg.tail, err = readTail(log, msg.size, firstTail)
	}
	msg.err = err
	return msg
}

// opened begins to read the log.
func (m *model) opened(msg openedMsg) tea.Cmd {
	v := m.view
	if msg.run.ID != "" {
		v.run = msg.run
	}
	if m.o.first == "" {
		m.o.first = string(msg.run.ID)
	}
	if v.log != nil { // it was opened twice
		_ = msg.log.Close() // it was only read
		return nil
	}
	v.log, v.size = msg.log, msg.size
	if msg.err != nil {
		v.err = cleanLine(msg.err.Error())
		return nil
	}
	if v.log == nil {
		if v.run.State.Terminal() {
			v.err = "this run ended before it had a log"
			return nil
		}
		run := v.run
		return m.o.after(5*pollEvery, func() tea.Msg { return runMsg{v.gen, run} })
	}
	v.idx.tail, v.idx.tailFrom, v.idx.tailEnd = msg.tail.tail, msg.tail.tailFrom, msg.tail.tailEnd
	v.scan = newScanner(v.log)
	v.arrange()
	return m.scanOn()
}

// scanOn reads the next step of the log.
func (m *model) scanOn() tea.Cmd {
	v := m.view
	gen, scan, log := v.gen, v.scan, v.log
	return func() tea.Msg {
		b, err := scan.step()
		size, sizeErr := log.Size()
		return batchMsg{gen, b, size, errors.Join(err, sizeErr)}
	}
}

// scanned takes a step of the log, and goes on with the next at once, when there is more,
// or in a while.
func (m *model) scanned(msg batchMsg) tea.Cmd {
	v := m.view
	if msg.err != nil {
		v.err = cleanLine(msg.err.Error())
		return nil
	}
	v.size = msg.size
	v.took(msg.batch)
	switch {
	case msg.batch.more:
		return tea.Batch(m.scanOn(), m.searchOn())
	case v.over() && (v.sum.result != nil || v.read >= v.size):
		return m.searchOn()
	}
	return tea.Batch(m.o.after(pollEvery, func() tea.Msg { return scanTick{v.gen} }), m.searchOn())
}

// load reads the items that the screen wants.
func (m *model) load() tea.Cmd {
	v := m.view
	if v.loading || len(v.want) == 0 || v.log == nil {
		return nil
	}
	var wanted [][]ref
	room := int64(loadMost)
	for _, seq := range v.want {
		refs := v.idx.refs(seq, &v.filter)
		if len(refs) == 0 {
			continue
		}
		for _, r := range refs {
			room -= min(r.size, maxLoad)
		}
		wanted = append(wanted, refs)
		if room < 0 {
			break
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	v.loading = true
	gen, log, raw := v.gen, v.log, v.filter.raw
	return func() tea.Msg {
		msg := loadedMsg{gen: gen}
		for _, refs := range wanted {
			it, err := loadItem(log, refs, raw)
			if err != nil {
				it.kind, it.text = other, err.Error()
			}
			msg.items = append(msg.items, it)
		}
		return msg
	}
}

// readDiff shows what the run changed.
func (m *model) readDiff() tea.Cmd {
	run, ctx := m.view.run.ID, m.ctx()
	m.tell("reading the changes…", false)
	return func() tea.Msg {
		patch, err := m.o.Actions.Diff(ctx, run)
		if err != nil {
			return pagerMsg{err: err}
		}
		return pagerMsg{pager: newPatch("changes of "+run.Short(), "run-"+run.Short()+".patch", patch)}
	}
}

// saveTo writes to a new file.
func saveTo(path string, from io.Reader) tea.Cmd {
	return func() tea.Msg {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return doneMsg{what: "save", err: err}
		}
		n, err := io.Copy(f, from)
		return doneMsg{what: fmt.Sprintf("saved %s to %s", bytesText(n), path), err: errors.Join(err, f.Close())}
	}
}
