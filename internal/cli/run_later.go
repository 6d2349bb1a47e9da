package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// runLater records a run and, unless it is not to start yet, tells the background
// runner. What is printed is its id.
func runLater(ctx context.Context, o *runOptions, p plan) error {
	if o.detach {
		if err := o.app.ready(ctx, p.config, p.spec); err != nil {
			return err
		}
	}
	h, err := o.app.host(ctx, p.config)
	if err != nil {
		return err
	}
	if err := h.submit(ctx, p); err != nil {
		return err
	}
	if err := o.printRun(p.spec.Run, p.spec.Task); err != nil {
		return err
	}
	if o.noStart {
		o.say("start it with: insightscli run --start %s\n", p.spec.Run.Short())
		return nil
	}
	o.say("follow it with: insightscli logs -f %s\n", p.spec.Run.Short())
	return h.leave(ctx)
}

// leave hands the work to the background runner. The exit code says that it goes on.
func (h hosted) leave(ctx context.Context) error {
	if err := h.state.knock(ctx); err != nil {
		return err
	}
	return exitWith(errs.Running.Code())
}

// runStart starts a recorded run, here or in the background.
func runStart(ctx context.Context, o *runOptions) error {
	c, err := o.app.config(o.settings)
	if err != nil {
		return err
	}
	h, err := o.app.host(ctx, c)
	if err != nil {
		return err
	}
	rec, err := h.state.store.Find(ctx, o.start)
	if err != nil {
		return err
	}
	id := rec.Spec.Run
	if rec.State.Terminal() {
		return errs.New("cli.run", errs.Conflict, "insightscli show "+id.Short(), "run %s is over (%s)", id.Short(), rec.State)
	}
	if rec.State != task.StateQueued || rec.Owner != "" || rec.Spec.Detached {
		return started(id)
	}
	if err := o.app.ready(ctx, c, rec.Spec); err != nil {
		return err
	}
	if o.detach {
		// A run that has begun and that nobody owns is the background runner's.
		if err := h.state.store.Begin(ctx, id); err != nil {
			return err
		}
		if err := o.printRun(id, rec.Spec.Task); err != nil {
			return err
		}
		return h.leave(ctx)
	}
	sink := o.app.sink(o.json, o.quiet, len(rec.Spec.Schema) > 0)
	result, err := o.attend(ctx, c, rec.Spec, sink, func(inbox <-chan task.Input, sink task.Sink) (task.Result, error) {
		return h.resume(ctx, id, inbox, sink)
	})
	if err != nil {
		return err
	}
	return o.ended(result, sink, rec.Spec.ExitCode)
}

// printRun prints the id of a run that goes on without this process.
func (o *runOptions) printRun(run, of task.ID) error {
	if o.json {
		return json.NewEncoder(o.app.streams.Out).Encode(struct {
			Run  task.ID `json:"run"`
			Task task.ID `json:"task"`
		}{run, of})
	}
	_, err := fmt.Fprintln(o.app.streams.Out, run)
	return err
}
