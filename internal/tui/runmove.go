package tui

import "github.com/Insights/insightscli/internal/task"

// move moves the cursor by so many rows.
func (v *runView) move(n int) {
	if v.cursor.seq == 0 {
		return
	}
	v.center = false
	if n < 0 {
		v.follow = false
		v.cursor = v.back(v.cursor, -n)
	} else {
		v.cursor = v.forth(v.cursor, n)
	}
	v.arrange()
}

// page moves the cursor and what is shown with it.
func (v *runView) page(n int) {
	if v.cursor.seq == 0 {
		return
	}
	v.center = false
	if n < 0 {
		v.follow = false
		v.top, v.cursor = v.back(v.top, -n), v.back(v.cursor, -n)
	} else {
		v.cursor = v.forth(v.cursor, n)
		if top := v.forth(v.top, n); !v.less(v.cursor, top) {
			v.top = top
		}
	}
	v.arrange()
}

// jump moves the cursor to an item.
func (v *runView) jump(seq uint32) {
	if seq == 0 {
		return
	}
	v.follow = false
	v.cursor = pos{seq, 0}
	n, ok := v.distance(v.top, v.cursor, v.height)
	v.center = !ok || n >= v.height
	v.arrange()
}

// ends moves the cursor to the beginning, or to the end and follows from there.
func (v *runView) ends(last bool) {
	v.follow, v.center = last, false
	if !last {
		v.top = pos{v.idx.after(0, &v.filter), 0}
		v.cursor = v.top
	}
	v.arrange()
}

// item moves the cursor to the next item, or to the one before.
func (v *runView) item(forth bool) {
	if forth {
		v.jump(v.idx.after(v.cursor.seq, &v.filter))
		return
	}
	v.jump(v.idx.before(v.cursor.seq, &v.filter))
}

// fault moves the cursor to the next event that went wrong, or to the one before. It
// reports whether there is one.
func (v *runView) fault(forth bool) bool {
	for seq := v.cursor.seq; ; {
		if forth {
			seq++
		} else {
			seq--
		}
		m := v.idx.at(seq)
		if m == nil {
			return false
		}
		if head := v.idx.headOf(seq, &v.filter); m.flags&isBad != 0 && head != v.cursor.seq {
			if h := v.idx.at(head); h != nil && v.filter.shows(h, head) {
				v.jump(head)
				return true
			}
		}
	}
}

// toggle opens or closes the item under the cursor.
func (v *runView) toggle() {
	seq := v.cursor.seq
	if v.open[seq] = !v.open[seq]; !v.open[seq] {
		delete(v.open, seq)
		v.cursor.line = 0
	}
	if b := v.blocks[seq]; b != nil {
		b.rows = nil
	}
	if v.follow && v.idx.after(seq, &v.filter) == 0 {
		v.follow = false
	}
	v.arrange()
}

// refilter shows the log through another filter.
func (v *runView) refilter(f filter) {
	if f.raw != v.filter.raw {
		clear(v.blocks) // they are laid out otherwise
		clear(v.open)
	}
	at := v.cursor.seq
	v.filter = f
	v.cursor = pos{v.idx.headOf(at, &v.filter), 0}
	v.center = !v.follow
	v.arrange()
}

// selected is the item under the cursor as plain text, for the clipboard.
func (v *runView) selected() string {
	b := v.blocks[v.cursor.seq]
	if b == nil {
		return ""
	}
	if v.filter.raw || b.it.kind == message || b.it.kind == user || b.it.kind == thought {
		return clean(b.it.text)
	}
	var s string
	for _, r := range b.it.rows(200, true) {
		s += r.String() + "\n"
	}
	return s
}

// asking is the request for leave that is to be answered: that under the cursor, else the
// one that waits longest.
func (v *runView) asking() *task.Permission {
	if b := v.blocks[v.cursor.seq]; b != nil && b.it.asks != nil {
		for i := range v.sum.asked {
			if v.sum.asked[i].RequestID == b.it.asks.RequestID {
				return &v.sum.asked[i]
			}
		}
	}
	if len(v.sum.asked) == 0 {
		return nil
	}
	return &v.sum.asked[0]
}

// over reports whether nothing more will come.
func (v *runView) over() bool { return v.sum.result != nil || v.run.State.Terminal() }
