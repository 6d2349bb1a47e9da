package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// sideFrom is how wide a screen must be for the panel beside the log, and sideWidth how
	// wide that is.
	sideFrom  = 110
	sideWidth = 36
	// lowScreen is the height below which only the log and one line are shown.
	lowScreen = 6
)

// View implements tea.Model.
func (m *model) View() string {
	if m.width == 0 {
		return ""
	}
	var out []string
	if m.bodyTop() > 0 {
		out = append(out, m.topBar())
		if m.bodyTop() > 1 {
			out = append(out, m.painter("").paint(m.stepRow(), m.width))
		}
	}
	width, height := m.bodySize()
	body := m.body(width, height)
	for len(body) < height {
		body = append(body, "")
	}
	out = append(out, body[:height]...)
	for _, r := range m.lowerRows() {
		out = append(out, m.painter("").paint(r, m.width))
	}
	out = append(out, m.bottomBar())
	return strings.Join(out[max(0, len(out)-m.height):], "\n")
}

func (m *model) painter(query string) painter { return painter{m.o.Color, query} }

// bodyTop is how many lines are above the body.
func (m *model) bodyTop() int {
	switch {
	case m.height < lowScreen:
		return 0
	case m.view != nil && m.pager == nil && m.form == nil && !m.hasSide():
		return 2
	}
	return 1
}

// bodySize is what the lines of our own leave.
func (m *model) bodySize() (width, height int) {
	return m.width, max(1, m.height-m.bodyTop()-len(m.lowerRows())-1)
}

// logSize is the part of the body that shows the log.
func (m *model) logSize() (width, height int) {
	width, height = m.width, max(1, m.height-m.bodyTop()-len(m.lowerRows())-1)
	if m.hasSide() {
		width -= sideWidth
	}
	return width, height
}

func (m *model) hasSide() bool { return m.view != nil && m.width >= sideFrom }

// body is the middle of the screen.
func (m *model) body(width, height int) []string {
	var rows []row
	p := m.painter("")
	switch {
	case m.form != nil:
		rows = m.form.rows(width, height)
	case m.pager != nil:
		rows, p = m.pager.rows(width, height), m.painter(m.pager.query)
	case m.view != nil:
		return m.logBody(height)
	default:
		rows = m.list.rows(m.now, width, height)
	}
	var out []string
	for _, r := range rows[:min(len(rows), height)] {
		out = append(out, p.paint(r, width))
	}
	return out
}

// logBody is the log of a run, with a panel beside it where there is room.
func (m *model) logBody(height int) []string {
	v := m.view
	width, _ := m.logSize()
	p := m.painter(v.search.query)
	var side []row
	if m.hasSide() {
		side = m.aboutRows(sideWidth - 2)
	}
	var out []string
	for i := range height {
		r, here := row(nil), false
		switch {
		case i < len(v.rows):
			r, here = v.rows[i].row, v.rows[i].seq == v.cursor.seq
		case i == 0:
			r = m.emptyRow()
		}
		gutter := span{"  ", plain}
		if here {
			gutter = span{"▏ ", dim}
			if v.rows[i].pos == v.cursor {
				gutter = span{"▌ ", accent}
			}
		}
		line := m.painter("").paint(row{gutter}, width) + p.paint(r, max(0, width-2))
		if side != nil {
			line += strings.Repeat(" ", max(0, width-min(2, width)-r.clip(max(0, width-2)).width())) + m.sideLine(side, i)
		}
		out = append(out, line)
	}
	return out
}

func (m *model) sideLine(side []row, i int) string {
	r := row{{"│ ", dim}}
	if i < len(side) {
		r = append(r, side[i].clip(sideWidth-2)...)
	}
	return m.painter("").paint(r, sideWidth)
}

// emptyRow says why there is no log.
func (m *model) emptyRow() row {
	v := m.view
	switch {
	case v.err != "":
		return text("error: "+v.err, bad)
	case v.log == nil, v.read == 0 && v.size > 0:
		return text("reading…", dim)
	case v.idx.last() > 0:
		return text("nothing of this kind; f chooses what is shown", dim)
	}
	return text("nothing has happened yet", dim)
}

func (m *model) topBar() string {
	p := m.painter("")
	switch {
	case m.form != nil:
		return p.bar(" new run", "", m.width)
	case m.pager != nil:
		return p.bar(" "+m.pager.title, fmt.Sprintf("%d/%d ", min(m.pager.top+1, len(m.pager.lines)), len(m.pager.lines)), m.width)
	case m.view != nil:
		r := m.view.run
		return p.bar(" "+r.ID.Short()+"  "+cleanLine(r.Title), m.stateText()+" ", m.width)
	}
	right := fmt.Sprintf("%d runs, by %s ", len(m.list.shown), sortNames()[m.list.sort])
	if m.list.query != "" {
		right = "filter: " + m.list.query + "  " + right
	}
	return p.bar(" insightscli", right, m.width)
}

// stateText is how the run stands.
func (m *model) stateText() string {
	v := m.view
	state, from, to := string(v.run.State), v.run.Started, m.now
	if r := v.sum.result; r != nil && r.State != "" {
		state, from, to = string(r.State), r.Started, r.Finished
	} else if v.run.State.Terminal() {
		to = v.run.Finished
	}
	if from.IsZero() || to.Before(from) {
		return state
	}
	return state + " " + render.Took(to.Sub(from).Round(time.Second/10))
}

// stepRow is the steps in one line, the newest at the right.
func (m *model) stepRow() row {
	var r row
	for _, s := range m.view.sum.steps {
		sign, f := stepSign(s)
		r = append(r, span{" " + sign + " ", f}, span{cleanLine(s.name), plain}, span{m.stepTook(s) + " ", dim})
	}
	for r.width() > m.width && len(r) > 3 {
		r = r[3:]
	}
	return r
}

func stepSign(s stepTime) (string, face) {
	switch s.status {
	case task.StepCompleted:
		return "✓", good
	case task.StepFailed:
		return "✗", bad
	}
	return "•", accent
}

func (m *model) stepTook(s stepTime) string {
	end := s.end
	if end.IsZero() {
		if m.view.over() {
			return ""
		}
		end = m.now
	}
	return " " + render.Took(max(0, end.Sub(s.begin)).Round(10*time.Millisecond))
}

// aboutRows are what is known of the run as a whole.
func (m *model) aboutRows(width int) []row {
	v := m.view
	var rows []row
	head := func(s string) {
		if len(rows) > 0 {
			rows = append(rows, nil)
		}
		rows = append(rows, text(s, heading))
	}
	put := func(r row) { rows = append(rows, r.wrap(width, text("  ", plain))...) }
	head("run")
	for _, f := range [][2]string{{"agent", v.run.Agent}, {"repo", strings.Join(v.run.Repos, " ")}, {"provider", v.run.Provider}, {"by", v.run.Who}} {
		if f[1] != "" {
			put(row{{f[0] + " ", dim}, {cleanLine(f[1]), plain}})
		}
	}
	if len(v.sum.steps) > 0 {
		head("steps")
	}
	for _, s := range v.sum.steps {
		sign, f := stepSign(s)
		put(row{{sign + " ", f}, {cleanLine(s.label), plain}, {m.stepTook(s), dim}})
	}
	if len(v.sum.plan) > 0 {
		rows = append(append(rows, nil), planRows(v.sum.plan, width)...)
	}
	m.usageRows(head, put)
	if len(v.sum.denied) > 0 {
		head("denied")
	}
	for _, d := range v.sum.denied {
		put(row{{"✗ ", bad}, {cleanLine(deniedText(d)), plain}})
	}
	if len(v.sum.published) > 0 {
		head("published")
	}
	for _, p := range v.sum.published {
		put(row{{"✓ ", good}, {cleanLine(publishedText(p)), plain}})
	}
	return rows
}

func (m *model) usageRows(head func(string), put func(row)) {
	s := &m.view.sum
	u := s.usage
	if u == nil {
		u = m.view.run.Usage
	}
	if u != nil && u.Requests > 0 {
		head("models")
		if s.model != "" {
			put(text(cleanLine(s.model), dim))
		}
		put(text(render.Tokens(*u), plain))
	}
	if s.window > 0 {
		put(text(fmt.Sprintf("context %d %%", s.used*100/s.window), dim))
	}
}

// lowerRows are the lines above the bottom bar: what is asked or typed, else what there is
// to say, else what waits for an answer.
func (m *model) lowerRows() []row {
	switch {
	case m.ask != nil:
		rows := m.ask.rows(m.width)
		return rows[:min(len(rows), max(1, m.height-2))]
	case m.note != "":
		f := plain
		if m.noteBad {
			f = bad
		}
		rows := text(m.note, f).wrap(m.width, nil)
		return rows[:min(len(rows), max(1, m.height/3))]
	case m.view != nil && m.pager == nil && len(m.view.sum.asked) > 0:
		p := m.view.asking()
		return []row{row{{"? ", warn}, {"the agent asks for leave, a answers: ", warn}, {cleanLine(p.ToolCall.Title), bold}}.clip(m.width)}
	}
	return nil
}

func (m *model) bottomBar() string {
	p := m.painter("")
	switch {
	case m.form != nil:
		return p.bar(" tab next  ctrl+s start  esc leave", "", m.width)
	case m.pager != nil:
		return p.bar(" ↑↓ scroll  / search  s save  q back", "", m.width)
	case m.view == nil:
		return p.bar(" enter open  n new  / filter  s sort  x cancel  P prune  ? help  q quit", "", m.width)
	}
	left := " ↑↓ move  enter open  / search  f filter  d diff  ? help  q leave"
	if m.view.run.Talks && !m.view.over() {
		left = " ↑↓ move  enter open  m message  a answer  i interrupt  x cancel  ? help  q leave"
	}
	return p.bar(left, m.place()+" ", m.width)
}

// place tells where the cursor stands.
func (m *model) place() string {
	v := m.view
	var s []string
	if v.filter.raw {
		s = append(s, "raw")
	}
	if v.search.query != "" {
		s = append(s, fmt.Sprintf("%d match", v.search.hits.count()))
	}
	if v.sum.damaged > 0 {
		s = append(s, fmt.Sprintf("%d damaged", v.sum.damaged))
	}
	if v.size > 0 && v.read < v.size && v.size-v.read > scanSize {
		s = append(s, fmt.Sprintf("reading %d %%", v.read*100/v.size))
	}
	if v.follow && !v.over() {
		return strings.Join(append(s, "following"), "  ")
	}
	return strings.Join(append(s, fmt.Sprintf("%d/%d", v.cursor.seq, v.idx.last())), "  ")
}
