package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
)

// printAll shows several runs at once, with the id of its run before every line: those
// that are over in the order in which things happened, live ones as things happen.
func (o *logsOptions) printAll(ctx context.Context, s *state, recs []journal.Record) error {
	out, flush := o.output()
	all := make([]*logPrinter, len(recs))
	for i, rec := range recs {
		all[i] = o.printer(s, rec, logStreams{out: out, err: o.app.streams.Err, prefix: o.prefix(rec, i)})
	}
	show := mergeRuns
	if o.follow {
		show = followRuns
	}
	return errors.Join(show(ctx, all), flush())
}

// distinct leaves out runs that were named before.
func distinct(recs []journal.Record) []journal.Record {
	known := map[task.ID]bool{}
	return slices.DeleteFunc(recs, func(rec journal.Record) bool {
		again := known[rec.Spec.Run]
		known[rec.Spec.Run] = true
		return again
	})
}

// prefix is what every line of a run begins with, on a terminal in a colour of its own.
func (o *logsOptions) prefix(rec journal.Record, i int) string {
	id := rec.Spec.Run.Short()
	if o.app.streams.Color && !o.json {
		const colours = 6 // without black and white, of which one is not seen
		return fmt.Sprintf("\x1b[3%dm%s |\x1b[0m ", 1+(i+1)%colours, id)
	}
	return id + " | "
}

// followRuns shows runs until each has finished. A line of one never breaks into another.
func followRuns(ctx context.Context, all []*logPrinter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // held while an event is shown
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, p := range all {
		show := p.show
		p.show = func(line []byte, ev task.Event) error {
			mu.Lock()
			defer mu.Unlock()
			return show(line, ev)
		}
		wg.Go(func() {
			if errs[i] = p.print(ctx); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// pulled is the next event of a run.
type pulled struct {
	ev   task.Event
	show func() error
}

// mergeRuns shows what there is of runs, by time.
func mergeRuns(ctx context.Context, all []*logPrinter) error {
	var failed error
	heads := make([]pulled, len(all))
	next := make([]func() (pulled, bool), len(all))
	for i, p := range all {
		begin, err := p.begin(ctx)
		if err != nil {
			return err
		}
		pull, stop := iter.Pull(p.events(ctx, begin, &failed))
		defer stop()
		next[i] = pull
		if first, ok := pull(); ok {
			heads[i] = first
		}
	}
	for {
		i := earliest(heads)
		if i < 0 {
			break
		}
		if err := heads[i].show(); err != nil {
			return err
		}
		heads[i], _ = next[i]()
	}
	for _, p := range all {
		failed = errors.Join(failed, p.finish())
	}
	return failed
}

// events are the events of a run. An event is valid until the next is asked for.
func (p *logPrinter) events(ctx context.Context, begin beginning, failed *error) iter.Seq[pulled] {
	visit := p.visitor(begin)
	return func(yield func(pulled) bool) {
		err := p.state.store.ReadLog(ctx, p.rec, begin.after, func(line []byte, ev task.Event) error {
			if !yield(pulled{ev: ev, show: func() error { return visit(line, ev) }}) {
				return io.EOF
			}
			return nil
		})
		if err != nil && !errors.Is(err, io.EOF) {
			*failed = errors.Join(*failed, err)
		}
	}
}

// earliest finds the event that happened first; -1: there is none.
func earliest(heads []pulled) int {
	found := -1
	for i, h := range heads {
		if h.show != nil && (found < 0 || h.ev.At.Before(heads[found].ev.At)) {
			found = i
		}
	}
	return found
}
