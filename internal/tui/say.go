package tui

import (
	"encoding/base64"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/Insights/insightscli/internal/task"
)

// wheel is how many rows a step of the mouse's wheel is.
const wheel = 3

// maxCopied bounds what is put on the clipboard: terminals drop more.
const maxCopied = 74_000

// leaveRun leaves the screen of a run. Only q leaves a run that this process carries out.
func (m *model) leaveRun(quit bool) tea.Cmd {
	if m.o.Hosted && !m.view.over() {
		if !quit {
			return nil
		}
		if m.o.End != nil {
			m.ask = &question{text: "Nobody answers the agent then: the run ends after its turn. Leave?", yes: func(m *model) tea.Cmd {
				m.o.End()
				return tea.Quit
			}}
			return nil
		}
	}
	return m.leave()
}

// sayKey are the keys that say something to a live run.
func (m *model) sayKey(k tea.KeyMsg) tea.Cmd {
	v, keys := m.view, m.keys
	isSay := is(k, keys.say) || is(k, keys.steer) || is(k, keys.answer) || is(k, keys.interrupt) || is(k, keys.end)
	switch {
	case !isSay && !is(k, keys.cancel):
		return nil
	case v.over():
		m.tell("the run is over", false)
		return nil
	case isSay && !v.run.Talks:
		m.tell("the run is a plain command, which takes no messages", false)
		return nil
	}
	switch {
	case is(k, keys.say):
		m.askSay(task.InputMessage)
	case is(k, keys.steer):
		m.askSay(task.InputSteer)
	case is(k, keys.answer):
		m.askAnswer()
	case is(k, keys.interrupt):
		return m.input(task.Input{Kind: task.InputInterrupt}, "the turn is being ended")
	case is(k, keys.end):
		m.ask = &question{text: "End the run in order, as completed?", yes: func(m *model) tea.Cmd {
			return m.input(task.Input{Kind: task.InputEnd, Value: string(task.StateCompleted)}, "the run is being ended")
		}}
	case is(k, keys.cancel):
		m.askCancel(v.run)
	}
	return nil
}

// copy puts text on the clipboard of the terminal, which is asked with OSC 52: never
// without this key.
func (m *model) copy(s string) tea.Cmd {
	if s == "" {
		m.tell("there is nothing to copy", false)
		return nil
	}
	if len(s) > maxCopied {
		m.tell(fmt.Sprintf("%s are too many for a clipboard; s saves them", bytesText(int64(len(s)))), true)
		return nil
	}
	m.tell(fmt.Sprintf("copied %s", bytesText(int64(len(s)))), false)
	out := m.o.out
	return func() tea.Msg {
		_, err := fmt.Fprintf(out, "\x1b]52;c;%s\x07", base64.StdEncoding.EncodeToString([]byte(s)))
		if err != nil {
			return doneMsg{what: "copy", err: err}
		}
		return nil
	}
}

// mouseEvent takes the wheel and clicks.
func (m *model) mouseEvent(msg tea.MouseMsg) {
	n := 0
	switch msg.Button {
	case tea.MouseButtonWheelUp:
		n = -wheel
	case tea.MouseButtonWheelDown:
		n = wheel
	case tea.MouseButtonLeft:
		if msg.Action == tea.MouseActionPress {
			m.click(msg.Y - m.bodyTop())
		}
		return
	}
	_, height := m.bodySize()
	switch {
	case n == 0 || m.ask != nil || m.form != nil:
	case m.pager != nil:
		m.pager.scroll(n, height)
	case m.view != nil:
		m.view.page(n)
	default:
		m.list.move(n)
	}
}

// click puts the cursor on a row; on that where it is, it opens or closes the item.
func (m *model) click(y int) {
	v := m.view
	if v == nil || m.pager != nil || m.form != nil || m.ask != nil || y < 0 || y >= len(v.rows) {
		return
	}
	at := v.rows[y].pos
	if at == v.cursor {
		v.toggle()
		return
	}
	v.follow, v.center, v.cursor = false, false, at
	v.arrange()
}
