package cli

import (
	"context"
	"fmt"
	"sync"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// hosted carries out runs in this process. While one is going on, other processes
// reach its sandbox through this one.
type hosted struct {
	app   *app
	state *state
}

var _ executor = hosted{}

// host opens the state directory for a run of this process.
func (a *app) host(ctx context.Context, c config.Config) (hosted, error) {
	s, err := a.openState(ctx, c)
	if err != nil {
		return hosted{}, err
	}
	if err := s.adopt(ctx); err != nil { // no reason not to do what was asked
		fmt.Fprintf(a.streams.Err, "note: runs without an owner wait: %s\n", oneLine(err.Error()))
	}
	return hosted{app: a, state: s}, nil
}

// Run implements executor.
func (h hosted) Run(ctx context.Context, spec task.Spec, secrets map[string]secret.String, inbox <-chan task.Input, sink task.Sink) (task.Result, error) {
	return h.within(ctx, func(p *process) (task.Result, error) {
		res, err := p.runner.Run(ctx, spec, secrets, inbox, sink)
		h.taken(err)
		return res, err
	})
}

// resume takes a recorded run that nobody owns and carries it out.
func (h hosted) resume(ctx context.Context, run task.ID, inbox <-chan task.Input, sink task.Sink) (task.Result, error) {
	return h.within(ctx, func(p *process) (task.Result, error) {
		if ctx.Err() != nil {
			return task.Result{}, context.Cause(ctx)
		}
		// Once claimed it is carried out, if only to its end.
		ok, err := h.state.store.Claim(context.WithoutCancel(ctx), run, "", p.owner.ID)
		if err != nil {
			return task.Result{}, err
		}
		if !ok {
			return task.Result{}, started(run)
		}
		return p.runner.Execute(ctx, run, inbox, sink)
	})
}

// submit records a run without starting it.
func (h hosted) submit(ctx context.Context, p plan) error {
	_, err := h.within(ctx, func(proc *process) (task.Result, error) {
		err := proc.runner.Submit(ctx, p.spec, p.secrets)
		h.taken(err)
		return task.Result{}, err
	})
	return err
}

// taken leaves to a run that there is now the tokens that were made for its plan.
func (h hosted) taken(err error) {
	if err == nil {
		h.app.minted = nil
	}
}

// within makes this process an owner of runs while f works.
func (h hosted) within(ctx context.Context, f func(*process) (task.Result, error)) (task.Result, error) {
	p, err := h.state.newProcess(ctx, h.app.process.Force)
	if err != nil {
		return task.Result{}, err
	}
	// The socket outlives ctx: a run that is being ended can still be looked into.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var served error
	var wg sync.WaitGroup
	wg.Go(func() { served = p.serve(serving, func() {}) })
	wg.Go(func() { p.services.tellLeft(serving) })
	res, err := f(p)
	stop()
	wg.Wait()
	if served != nil && err == nil {
		fmt.Fprintf(h.app.streams.Err, "note: other processes could not reach the run: %s\n", oneLine(served.Error()))
	}
	if release := p.owner.Release(); release != nil && err == nil {
		err = release
	}
	return res, err
}

func started(run task.ID) error {
	return errs.New("cli.run", errs.Conflict, "insightscli show "+run.Short(), "run %s has been started already", run.Short())
}
