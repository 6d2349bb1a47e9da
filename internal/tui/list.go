package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// runList is the table of runs.
type runList struct {
	runs   []Run // as they came, the newest first
	shown  []Run // filtered and sorted
	query  string
	sort   int // a column of sortNames
	down   bool
	cursor int
	loaded bool
	err    string
}

// sortNames are the orders of the table.
func sortNames() []string { return []string{"age", "state", "title", "agent", "repo", "cost"} }

// took takes the runs anew; the cursor stays on its run.
func (l *runList) took(runs []Run, err error) {
	l.loaded, l.err = true, ""
	if err != nil {
		l.err = cleanLine(err.Error())
		return
	}
	l.runs = runs
	l.refresh()
}

func (l *runList) refresh() {
	var at task.ID
	if r := l.selected(); r != nil {
		at = r.ID
	}
	l.shown = nil
	for _, r := range l.runs {
		if l.matches(r) {
			l.shown = append(l.shown, r)
		}
	}
	slices.SortStableFunc(l.shown, l.compare)
	l.cursor = max(0, min(l.cursor, len(l.shown)-1))
	if i := slices.IndexFunc(l.shown, func(r Run) bool { return r.ID == at }); i >= 0 {
		l.cursor = i
	}
}

func (l *runList) matches(r Run) bool {
	words := strings.ToLower(strings.Join(append([]string{string(r.ID), string(r.State), r.Title, r.Agent, r.Provider}, r.Repos...), " "))
	for _, w := range strings.Fields(strings.ToLower(l.query)) {
		if !strings.Contains(words, w) {
			return false
		}
	}
	return true
}

func (l *runList) compare(a, b Run) int {
	n := 0
	switch sortNames()[l.sort] {
	case "age":
		n = b.Created.Compare(a.Created)
	case "state":
		n = strings.Compare(string(a.State), string(b.State))
	case "title":
		n = strings.Compare(a.Title, b.Title)
	case "agent":
		n = strings.Compare(a.Agent, b.Agent)
	case "repo":
		n = strings.Compare(strings.Join(a.Repos, " "), strings.Join(b.Repos, " "))
	case "cost":
		n = int(sign(cost(b) - cost(a)))
	}
	if l.down {
		return -n
	}
	return n
}

func sign(f float64) float64 {
	switch {
	case f > 0:
		return 1
	case f < 0:
		return -1
	}
	return 0
}

func cost(r Run) float64 {
	if r.Usage == nil {
		return 0
	}
	return r.Usage.CostUSD
}

func (l *runList) selected() *Run {
	if l.cursor < 0 || l.cursor >= len(l.shown) {
		return nil
	}
	return &l.shown[l.cursor]
}

func (l *runList) move(n int) { l.cursor = max(0, min(l.cursor+n, len(l.shown)-1)) }

// column is one of the table.
type column struct {
	name  string
	width int // 0: what is left
	from  int // columns that the screen must have
	value func(r Run, now time.Time) (string, face)
}

func columns() []column {
	return []column{
		{"RUN", 8, 0, func(r Run, _ time.Time) (string, face) { return r.ID.Short(), plain }},
		{"", 1, 0, func(r Run, _ time.Time) (string, face) { return stateSign(r.State), stateFace(r.State) }},
		{"STATE", 11, wordsFrom, func(r Run, _ time.Time) (string, face) { return string(r.State), stateFace(r.State) }},
		{"TITLE", 0, 0, func(r Run, _ time.Time) (string, face) { return cleanLine(r.Title), plain }},
		{"AGENT", 8, 60, func(r Run, _ time.Time) (string, face) { return cleanLine(r.Agent), plain }},
		{"REPO", 16, 110, func(r Run, _ time.Time) (string, face) { return cleanLine(strings.Join(r.Repos, " ")), plain }},
		{"AGE", 4, 30, func(r Run, now time.Time) (string, face) { return age(now.Sub(r.Created)), plain }},
		{"COST", 8, 72, func(r Run, _ time.Time) (string, face) { return costText(r.Usage), plain }},
		{"PROVIDER", 8, 84, func(r Run, _ time.Time) (string, face) { return cleanLine(r.Provider), dim }},
	}
}

// wordsFrom is how wide a screen must be to say the state in words.
const wordsFrom = 60

func stateSign(s task.State) string {
	switch s {
	case task.StateCompleted:
		return "✓"
	case task.StateFailed, task.StateCancelled:
		return "✗"
	case task.StateInProgress:
		return "•"
	}
	return "-"
}

func stateFace(s task.State) face {
	switch s {
	case task.StateCompleted:
		return good
	case task.StateFailed:
		return bad
	case task.StateInProgress:
		return accent
	}
	return dim
}

func costText(u *task.Tokens) string {
	switch {
	case u == nil || u.Requests == 0:
		return ""
	case u.Unpriced == u.Requests:
		return "?"
	}
	return fmt.Sprintf("$%.4f", u.CostUSD)
}

// age is a length of time in one unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// rows are the heads and what fits below them.
func (l *runList) rows(now time.Time, width, height int) []row {
	if l.err != "" {
		return text("error: "+l.err, bad).wrap(width, nil)
	}
	switch {
	case !l.loaded:
		return []row{text("reading…", dim)}
	case len(l.runs) == 0:
		return []row{text("there are no runs yet; n starts one", dim)}
	}
	var cols []column
	room := width - 2
	for _, c := range columns() {
		if width >= c.from && (c.name != "" || width < wordsFrom) {
			cols = append(cols, c)
			room -= c.width + 2
		}
	}
	out := []row{headRow(cols, room)}
	height--
	top := max(0, min(l.cursor-height/2, len(l.shown)-height))
	for i := top; i < len(l.shown) && len(out) <= height; i++ {
		out = append(out, l.rowOf(l.shown[i], cols, room, i == l.cursor, now))
	}
	if len(l.shown) == 0 {
		out = append(out, text("no run matches", dim))
	}
	return out
}

func headRow(cols []column, room int) row {
	line := "  "
	for _, c := range cols {
		line += pad(c.name, c.cells(room)) + "  "
	}
	return text(strings.TrimRight(line, " "), dim)
}

func (c column) cells(room int) int {
	if c.width == 0 {
		return max(4, room)
	}
	return c.width
}

func (l *runList) rowOf(r Run, cols []column, room int, here bool, now time.Time) row {
	out := row{{"  ", plain}}
	if here {
		out = row{{"> ", accent}}
	}
	for _, c := range cols {
		s, f := c.value(r, now)
		if here && f == plain {
			f = bold
		}
		out = append(out, span{pad(s, c.cells(room)) + "  ", f})
	}
	return out
}
