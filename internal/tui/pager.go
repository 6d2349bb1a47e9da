package tui

import "strings"

// pager shows lines that are longer and more than the screen.
type pager struct {
	title string
	name  string // what it is saved as
	lines []row
	body  string // what is saved
	top   int
	left  int    // cells that are scrolled away
	query string // what is marked
}

// newPatch is a pager for a unified diff.
func newPatch(title, name string, patch []byte) *pager {
	p := &pager{title: title, name: name, body: string(patch)}
	for _, l := range splitLines(clean(p.body)) {
		p.lines = append(p.lines, patchRow(strings.ReplaceAll(l, "\t", "    ")))
	}
	if len(p.lines) == 0 {
		p.lines = []row{text("nothing was changed", dim)}
	}
	return p
}

// newPages is a pager for rows of our own.
func newPages(title string, rows []row) *pager { return &pager{title: title, lines: rows} }

func (p *pager) scroll(n, height int) {
	p.top = max(0, min(p.top+n, len(p.lines)-height))
}

// hit moves to the next line that holds the query, or to the one before.
func (p *pager) hit(query string, forth bool) bool {
	step := 1
	if !forth {
		step = -1
	}
	for i := p.top + step; i >= 0 && i < len(p.lines); i += step {
		if len(matches(p.lines[i].String(), query)) > 0 {
			p.top = max(0, min(i, len(p.lines)-1))
			return true
		}
	}
	return false
}

// rows are those that are on the screen.
func (p *pager) rows(width, height int) []row {
	var out []row
	for i := p.top; i < len(p.lines) && len(out) < height; i++ {
		out = append(out, p.lines[i].skip(p.left).clip(width))
	}
	return out
}

// skip is the row without its first cells.
func (r row) skip(n int) row {
	if n <= 0 {
		return r
	}
	cells := r.cells()
	for n > 0 && len(cells) > 0 {
		n -= cells[0].w
		cells = cells[1:]
	}
	return join(cells)
}
