package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// cleanUp removes the sandbox and all that belongs to it. It is not reached by the
// cancellation of ctx, and bounded: by a minute, or by two seconds from the moment
// the user asked a second time. Its error is reported beside the first.
func (x *execution) cleanUp(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if x.client != nil {
		x.runner.setClient(x.spec.Run, nil)
		defer func() { _ = x.client.Close() }() // the sandbox is gone by then
	}
	if x.spec.Keep && x.sandboxID() != "" {
		x.story.notice("info", fmt.Sprintf("the sandbox is kept: %s; remove it with `insightscli prune --yes`", x.sandboxID()))
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, cleanupBound)
	defer cancel()
	stop := x.whenForced(func() { time.AfterFunc(forcedBound, cancel) })
	defer stop()

	st := step{"cleanup", "Removing sandbox", "Removed sandbox"}
	x.story.step(st.name, task.StepInProgress, st.doing, "")
	_, err := x.s().Destroy(bounded, steps.DestroyIn{Spec: x.spec, Domain: x.s().Domain, Sandbox: x.sandboxID()}, x.box)
	if err != nil {
		x.story.step(st.name, task.StepFailed, st.doing, err.Error())
		return err
	}
	x.story.step(st.name, task.StepCompleted, st.done, "")
	return nil
}

// sandboxID is the run's sandbox, as far as it got one.
func (x *execution) sandboxID() sandbox.ID {
	if x.box != nil {
		return x.box.ID()
	}
	return sandbox.ID(x.rec.Sandbox)
}

// capture takes what the sandbox changed out of it, as far as there is a sandbox to
// ask. It is not reached by the cancellation of ctx, which only leaves it less time.
// What goes wrong is told per repository and never changes how the run ended.
func (x *execution) capture(ctx context.Context) {
	if x.client == nil || len(x.repos) == 0 {
		return
	}
	bound := captureBound
	if ctx.Err() != nil {
		bound = cleanupBound // somebody waits
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	stop := x.whenForced(cancel)
	defer stop()
	changes, err := x.runner.capture(bounded, x.spec.Run, x.client, x.repos)
	if err != nil {
		x.story.notice("error", err.Error())
		return
	}
	x.changes = changes
	for _, r := range changes {
		if r.Error != "" {
			x.story.notice("error", fmt.Sprintf("changes in %s/%s were not taken out: %s", r.Org, r.Name, r.Error))
		}
	}
}

func (x *execution) forced() bool {
	select {
	case <-x.runner.c.Force:
		return true
	default:
		return false
	}
}

// whenForced calls f when the user asks a second time, unless stop was called
// before. It waits for its goroutine in stop.
func (x *execution) whenForced(f func()) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-x.runner.c.Force:
			f()
		case <-end:
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// finish writes the end: the finished event first, then the terminal state with the
// run's secrets erased.
func (x *execution) finish(ctx context.Context, res task.Result) (task.Result, error) {
	if x.watcher != nil {
		if lost := x.watcher.Lost(); lost != "" {
			x.story.notice("warn", lost)
		}
	}
	x.story.tell(task.KindFinished, res)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupBound)
	defer cancel()
	logErr := x.story.log.Sync()
	if err := x.runner.c.Store.Finish(bounded, x.spec.Run, res); err != nil {
		return res, err
	}
	if logErr != nil {
		return res, fmt.Errorf("write the event log: %w", logErr)
	}
	return res, nil
}
