package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/reply"
	"github.com/Insights/insightscli/internal/task"
)

// inputPoll is how often the journal is asked for inputs that another process
// wrote.
const inputPoll = 200 * time.Millisecond

// deliverBound is how long an agent server may take to take an input.
const deliverBound = 30 * time.Second

// takeInputs delivers what people say to the run, from the inbox and from the
// journal, until the returned function is called. A cancel, and the end of parent,
// end the work, whatever the delivery of another input waits for.
func (x *execution) takeInputs(parent context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	var wg sync.WaitGroup
	waiting := make(chan struct{}, 1)
	x.turns.said(x.inbox != nil)
	wg.Go(func() { x.listen(ctx, parent, waiting) })
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-waiting:
				x.deliverInputs(ctx)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// listen journals what is said here, ends the work when that is wanted, and tells
// waiting that there is something to deliver.
func (x *execution) listen(ctx, parent context.Context, waiting chan<- struct{}) {
	ended, inbox := parent.Done(), x.inbox
	t := time.NewTicker(inputPoll)
	defer t.Stop()
	for {
		x.lookForInputs(ctx, waiting)
		select {
		case <-ctx.Done():
			return
		case <-ended:
			ended = nil
			x.parentEnded(ctx, context.Cause(parent))
		case in, ok := <-inbox:
			if !ok {
				inbox = nil // nobody says anything any more
				x.turns.said(false)
				continue
			}
			x.record(ctx, in)
		case <-t.C:
		}
	}
}

// parentEnded ends the work because this process is to end it, or to let go of it.
func (x *execution) parentEnded(ctx context.Context, cause error) {
	if !errors.Is(cause, ErrAbandoned) { // not the end of the run: nothing is journalled
		x.record(ctx, task.Input{Kind: task.InputCancel, Text: cause.Error()})
	}
	x.limits.cancel(cause)
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

// lookForInputs acts on a cancel, which does not wait behind what cannot be
// delivered. It is never marked as taken: whoever continues this run must see it too.
func (x *execution) lookForInputs(ctx context.Context, waiting chan<- struct{}) {
	queued, err := x.runner.c.Store.Inputs(ctx, x.spec.Run)
	if err != nil || len(queued) == 0 {
		return // the database is busy or ctx is done: asked again at the next tick
	}
	if slices.ContainsFunc(queued, func(q journal.QueuedInput) bool { return q.Kind == task.InputCancel }) {
		x.limits.cancel(errCanceled)
		return
	}
	for _, q := range queued {
		if q.Kind == task.InputEnd && x.spec.Agent.Drives() {
			x.turns.end(endState(q.Value), q.Text, q.Name != task.EndAfterTurn)
		}
	}
	select {
	case waiting <- struct{}{}:
	default:
	}
}

// deliverInputs delivers the journalled inputs, in order. One that cannot be
// delivered yet stays, and those after it wait: nothing goes before the run's own prompt.
func (x *execution) deliverInputs(ctx context.Context) {
	queued, err := x.runner.c.Store.Inputs(ctx, x.spec.Run)
	if err != nil || !x.started.Load() {
		return
	}
	ending := false
	for _, q := range queued {
		client, err := x.runner.Client(x.spec.Run)
		switch {
		case err != nil, q.Kind == task.InputCancel, q.Kind == task.InputEnd && q.Name != task.EndAfterTurn:
			return // no link, or no more need
		case q.Kind == task.InputEnd:
			ending = x.turns.lasts(q.Input)
			continue
		case ending && q.Kind == task.InputMessage:
			continue // there is no further turn
		}
		if !x.deliverOne(ctx, client, q) {
			return
		}
	}
}

// deliverOne delivers one input, and reports whether it is done with it.
func (x *execution) deliverOne(ctx context.Context, c *agent.Client, q journal.QueuedInput) bool {
	switch err := x.deliver(ctx, c, q.Input); {
	case err == nil:
		x.limits.active() // somebody is there
	case ctx.Err() != nil, errors.Is(err, agent.ErrLost):
		return false // sent again over the next link, under the same id
	default:
		x.refused(q.Input, err)
	}
	// If this fails it is sent again; the agent server knows its id.
	return x.runner.c.Store.TakeInput(context.WithoutCancel(ctx), x.spec.Run, q.N) == nil
}

// tellUnheard tells of messages that came too late for a turn.
func (x *execution) tellUnheard(ctx context.Context) {
	queued, err := x.runner.c.Store.Inputs(context.WithoutCancel(ctx), x.spec.Run)
	if err != nil {
		return // nothing depends on it
	}
	for _, q := range queued {
		if (q.Kind == task.InputMessage || q.Kind == task.InputSteer) && !reply.IsRetry(q.ID) {
			x.refused(q.Input, errors.New("the run is over"))
		}
	}
}

// endState is the state that an input of kind end asks for.
func endState(value string) task.State {
	if task.State(value) == task.StateFailed {
		return task.StateFailed
	}
	return task.StateCompleted
}

// refused tells that nobody took an input.
func (x *execution) refused(in task.Input, err error) {
	n := task.Notice{Level: "warn", Message: "input " + string(in.Kind) + " was not taken: " + err.Error()}
	if in.Kind == task.InputMessage || in.Kind == task.InputSteer {
		n.MessageID = in.ID
	}
	x.story.tell(task.KindNotice, n)
}

func (x *execution) deliver(ctx context.Context, c *agent.Client, in task.Input) error {
	if in.Kind == task.InputPermission && x.reporter != nil {
		if mine, err := x.reporter.answer(in); mine {
			return err
		}
	}
	x.turns.saying(in)
	ctx, cancel := context.WithTimeout(ctx, deliverBound)
	defer cancel()
	return c.Send(ctx, in)
}
