package tui

import (
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// keyMap is every key that does something, from which the help is made.
type keyMap struct {
	up, down, pageUp, pageDown, halfUp, halfDown, first, last key.Binding
	open, back, help, quit, stop, mouse                       key.Binding

	// of the table of runs
	filterRuns, sort, reverse, create, cancel, prune key.Binding

	// of a run
	next, prev, fold, find, again, against, kinds, fault, faultBack, raw, diff, about key.Binding
	copy, save, say, steer, interrupt, answer, end                                    key.Binding
}

func bind(help string, keys ...string) key.Binding {
	names := strings.Join(keys, ", ")
	if strings.HasSuffix(names, " ") { // the space bar
		names += "space"
	}
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(strings.ReplaceAll(names, ",  ", ", "), help))
}

func newKeyMap() keyMap {
	return keyMap{
		up: bind("up", "up", "k"), down: bind("down", "down", "j"),
		pageUp: bind("page up", "pgup", "b"), pageDown: bind("page down", "pgdown", " "),
		halfUp: bind("half a page up", "ctrl+u"), halfDown: bind("half a page down", "ctrl+d"),
		first: bind("to the beginning", "home", "g"), last: bind("to the end, and follow", "end", "G"),
		open: bind("open", "enter"), back: bind("back", "esc", "backspace"), help: bind("help", "?"),
		quit: bind("leave", "q"), stop: bind("end what this process does; twice: at once", "ctrl+c"),
		mouse: bind("mouse on or off", "v"),

		filterRuns: bind("filter by words", "/"), sort: bind("sort by the next column", "s"), reverse: bind("turn the order round", "S"),
		create: bind("new run", "n"), cancel: bind("cancel the run", "x"), prune: bind("remove what runs left behind", "P"),

		next: bind("next item", "tab", "J"), prev: bind("previous item", "shift+tab", "K"), fold: bind("open or close the item", "enter", "o"),
		find: bind("search", "/"), again: bind("next match", "n"), against: bind("previous match", "N"),
		kinds: bind("choose the kinds that are shown", "f"), fault: bind("next error", "e"), faultBack: bind("previous error", "E"),
		raw: bind("stored lines as they are", "r"), diff: bind("changes of the workspace", "d"), about: bind("steps, plan, cost, hosts", "t"),
		copy: bind("copy the item to the clipboard", "y"), save: bind("save the log, or the diff", "s"),
		say: bind("message to the agent", "m"), steer: bind("words into the turn that goes on", "M"),
		interrupt: bind("end the turn, not the run", "i"), answer: bind("answer the agent's question", "a"),
		end: bind("end an agent's run in order", "X"),
	}
}

// moving, ofRun and ofRuns are the keys by where they mean something.
func (k keyMap) moving() []key.Binding {
	return []key.Binding{k.up, k.down, k.pageUp, k.pageDown, k.halfUp, k.halfDown, k.first, k.last, k.back, k.mouse, k.help, k.quit, k.stop}
}

func (k keyMap) ofRun() []key.Binding {
	return []key.Binding{
		k.next, k.prev, k.fold, k.find, k.again, k.against, k.kinds, k.fault, k.faultBack, k.raw, k.about, k.diff,
		k.copy, k.save, k.say, k.steer, k.answer, k.interrupt, k.cancel, k.end,
	}
}

func (k keyMap) ofRuns() []key.Binding {
	return []key.Binding{k.open, k.filterRuns, k.sort, k.reverse, k.create, k.cancel, k.prune}
}

// helpRows are the keys and what they do, those of the screen that is left first.
func (k keyMap) helpRows(ofRun bool) []row {
	type section struct {
		name string
		keys []key.Binding
	}
	parts := []section{{"The table of runs", k.ofRuns()}, {"A run", k.ofRun()}, {"Everywhere", k.moving()}}
	if ofRun {
		parts[0], parts[1] = parts[1], parts[0]
	}
	var rows []row
	for _, part := range parts {
		rows = append(rows, text(part.name, heading))
		for _, b := range part.keys {
			rows = append(rows, row{{"  " + pad(b.Help().Key, 16), accent}, {b.Help().Desc, plain}})
		}
		rows = append(rows, nil)
	}
	return append(rows, text("While typing: enter sends, alt+enter begins a new line, esc leaves it.", dim))
}

func is(k tea.KeyMsg, b key.Binding) bool { return key.Matches(k, b) }
