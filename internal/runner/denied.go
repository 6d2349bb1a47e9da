package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// denials sums up what the network policy refused, from the run's own events, so that the
// Result of a run that changed hands has all of it.
type denials struct {
	mu  sync.Mutex // guards sum
	sum []task.Denied
}

func (d *denials) event(ev task.Event) {
	if ev.Kind != task.KindDenied {
		return
	}
	one, ok := read[task.Denied](ev)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum = task.AddDenied(d.sum, one)
}

func (d *denials) all() []task.Denied {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sum)
}

// replay takes in what an earlier runner of the run has told.
func (d *denials) replay(ctx context.Context, x *execution) error {
	if last, _ := x.story.log.Last(); last == 0 {
		return nil
	}
	err := x.runner.c.Store.ReadLog(ctx, x.rec, 0, func(_ []byte, ev task.Event) error {
		d.event(ev)
		return nil
	})
	if errs.KindOf(err) == errs.Incomplete {
		return nil // lines are damaged: what can be known of them is known
	}
	return err
}
