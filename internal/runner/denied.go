package runner

import (
	"slices"
	"sync"

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
