package cli

import (
	"context"
	"slices"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// beginning is where --tail begins to print: after an event, with so many lines of
// the next one left out.
type beginning struct {
	after uint64
	skip  int
}

// counted is an event as --tail sees it.
type counted struct {
	seq   uint64
	lines int // that end in it
	mid   int // 1 if it begins inside a line, else 0
}

// begin finds the beginning of the last lines by reading the log once, keeping a few
// numbers an event.
func (p *logPrinter) begin(ctx context.Context) (beginning, error) {
	o := p.o
	if o.tail < 0 || p.last != nil { // with --grep lines are counted as they are shown
		return beginning{}, nil
	}
	var last []counted
	var newest uint64
	sum, open := 0, map[task.Stream]bool{}
	err := p.state.store.ReadLog(ctx, p.rec, 0, func(_ []byte, ev task.Event) error {
		newest = ev.Seq
		if !p.filter.Keep(ev) { // which remembers tools that were begun before the last lines
			return nil
		}
		c := o.count(ev, open)
		last, sum = append(last, c), sum+c.lines
		for len(last) > 1 && sum-last[0].lines >= o.tail+last[1].mid {
			sum -= last[0].lines
			last = last[1:]
		}
		return nil
	})
	// Damaged lines are told once, by the reading that prints.
	if errs.KindOf(err) == errs.Incomplete {
		err = nil
	}
	if len(last) == 0 || o.tail == 0 {
		return beginning{after: newest}, err
	}
	b := beginning{after: last[0].seq - 1}
	if !o.json {
		b.skip = max(0, sum-o.tail)
	}
	return b, err
}

// count tells how many lines an event takes on a screen; a stored line is one. open
// remembers which streams stand inside a line.
func (o *logsOptions) count(ev task.Event, open map[task.Stream]bool) counted {
	c := counted{seq: ev.Seq, lines: 1}
	switch {
	case o.json:
		return c
	case ev.Kind != task.KindOutput && o.raw:
		c.lines = 0
	}
	out, err := ev.Output()
	if err != nil || ev.Kind != task.KindOutput {
		return c
	}
	if out.ExitCode != nil { // nothing is shown of it
		c.lines = 0
		return c
	}
	stream, _, _ := out.Bytes() // what cannot be decoded is not shown either
	if c.lines = out.Lines; !out.Continued {
		c.lines = max(c.lines, 1)
	}
	if open[stream] {
		c.mid = 1
	}
	open[stream] = out.Continued
	return c
}

// cut leaves out the first lines of an output event.
func (b beginning) cut(ev task.Event) task.Event {
	if b.skip == 0 || ev.Kind != task.KindOutput {
		return ev
	}
	out, err := ev.Output()
	if err != nil {
		return ev
	}
	stream, data, err := out.Bytes()
	if err != nil {
		return ev
	}
	for range b.skip {
		data = data[slices.Index(data, '\n')+1:]
	}
	ev.Params = task.AppendOutput(nil, stream, data, out.Continued)
	return ev
}
