package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
)

// inputPoll is how often the journal is asked for inputs that another process
// wrote.
const inputPoll = 200 * time.Millisecond

// takeInputs delivers what people say to the run, from the inbox and from the
// journal, until the returned function is called. A cancel, and the end of parent,
// end the work.
func (x *execution) takeInputs(parent context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	ended := parent.Done()
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(inputPoll)
		defer t.Stop()
		for {
			x.pumpInputs(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ended:
				ended = nil
				if errors.Is(context.Cause(parent), ErrAbandoned) {
					x.limits.cancel(ErrAbandoned) // not the end of the run: nothing is journalled
					continue
				}
				x.record(ctx, task.Input{Kind: task.InputCancel, Text: context.Cause(parent).Error()})
				x.limits.cancel(context.Cause(parent))
			case in := <-x.inbox:
				x.record(ctx, in)
			case <-t.C:
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// record journals an input before anything is done about it.
func (x *execution) record(ctx context.Context, in task.Input) {
	if in.ID == "" {
		in.ID = string(task.NewID())
	}
	if _, err := x.runner.c.Store.AddInput(ctx, x.spec.Run, in); err != nil && ctx.Err() == nil {
		x.story.notice("error", "input was not recorded: "+err.Error())
	}
}

// pumpInputs acts on the journalled inputs, in order. One that cannot be delivered
// yet stays, and those after it wait.
func (x *execution) pumpInputs(ctx context.Context) {
	queued, err := x.runner.c.Store.Inputs(ctx, x.spec.Run)
	if err != nil {
		return // the database is busy or ctx is done: asked again at the next tick
	}
	// A cancel does not wait behind what cannot be delivered. It is never marked as
	// taken: whoever continues this run must see it too.
	if slices.ContainsFunc(queued, func(q journal.QueuedInput) bool { return q.Kind == task.InputCancel }) {
		x.limits.cancel(errCanceled)
		return
	}
	for _, q := range queued {
		client, err := x.runner.Client(x.spec.Run)
		if err != nil {
			return // no link yet
		}
		if err := client.Send(ctx, q.Input); err != nil {
			x.story.notice("warn", "input "+string(q.Kind)+" was not taken: "+err.Error())
		}
		if err := x.runner.c.Store.TakeInput(ctx, x.spec.Run, q.N); err != nil {
			return
		}
	}
}
