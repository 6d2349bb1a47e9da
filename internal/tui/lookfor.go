package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"
)

// lookFor begins a search.
func (m *model) lookFor(query string) tea.Cmd {
	m.view.seek(query)
	return m.searchOn()
}

// searchOn searches the next step of the log, if there is anything to search.
func (m *model) searchOn() tea.Cmd {
	v := m.view
	if v.search.query == "" || v.search.busy || v.log == nil || v.search.pos >= v.read {
		return nil
	}
	v.search.busy = true
	gen, id, from, log, s := v.gen, v.search.id, v.search.pos, v.log, newSearcher(v.search.query, v.filter.raw)
	s.stop = v.search.stop
	return func() tea.Msg {
		hits, end, err := s.search(log, from)
		return foundMsg{gen, id, hits, end, err}
	}
}

// found takes a step of a search.
func (m *model) found(msg foundMsg) tea.Cmd {
	v := m.view
	if msg.id != v.search.id {
		return nil
	}
	v.search.busy = false
	if msg.err != nil {
		m.tell("search: "+msg.err.Error(), true)
		v.search.query = ""
		return nil
	}
	for _, n := range msg.hits {
		v.search.hits.add(n)
	}
	stuck := msg.end == v.search.pos
	v.search.pos = msg.end
	if v.search.toward != 0 && (len(msg.hits) > 0 || stuck || v.search.pos >= v.read) {
		m.goToHit(v.search.toward > 0, stuck || v.search.pos >= v.read)
	}
	if stuck {
		return nil
	}
	return m.searchOn()
}

// goToHit moves to what was found. Whether there is anything behind the cursor is known
// when all was searched.
func (m *model) goToHit(forth, all bool) {
	v := m.view
	switch {
	case v.hit(forth):
		v.search.toward = 0
	case all && v.search.hits.count() == 0:
		m.tell(fmt.Sprintf("%q was not found", v.search.query), true)
		v.search.toward = 0
	case all:
		v.search.toward = 0
		m.wrapAround(forth)
	}
}

// wrapAround goes on from the other end.
func (m *model) wrapAround(forth bool) {
	v := m.view
	from := v.cursor
	if v.cursor = (pos{}); !forth {
		v.cursor = pos{v.idx.last() + 1, 0}
	}
	seq := v.nextHit(forth)
	if seq == 0 {
		v.cursor = from
		m.tell("what matches is not shown; f and enter show more", false)
		return
	}
	v.cursor = from
	v.goTo(seq, forth)
	m.tell("the search went on from the other end", false)
}
