package llm

import (
	"context"
	"sync"

	"github.com/Insights/insightscli/internal/task"
)

// maxAtOnce is how many requests of a run with a budget go on at the same time: as many
// may go beyond it, since what a request uses is known at its end.
const maxAtOnce = 4

// queues bound the requests of each run that go on at the same time. The zero value is
// ready for use.
type queues struct {
	mu   sync.Mutex // guards runs
	runs map[task.ID]*queue
}

// queue is that of one run; it is there while somebody uses it.
type queue struct {
	users int
	slots chan struct{}
}

// enter waits until the run may make another request. leave must be called at its end.
func (q *queues) enter(ctx context.Context, run task.ID) (leave func(), err error) {
	q.mu.Lock()
	if q.runs == nil {
		q.runs = map[task.ID]*queue{}
	}
	own := q.runs[run]
	if own == nil {
		own = &queue{slots: make(chan struct{}, maxAtOnce)}
		q.runs[run] = own
	}
	own.users++
	q.mu.Unlock()
	forget := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(q.runs, run)
		}
	}
	select {
	case own.slots <- struct{}{}:
		return func() { <-own.slots; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}
