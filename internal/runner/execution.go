package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// How long the end of a run may take.
const (
	// cleanupBound is the time clean-up has when nobody presses twice.
	cleanupBound = time.Minute
	// forcedBound is the time it has after the second signal.
	forcedBound = 2 * time.Second
	// stopBound is how long a cancelled agent may take to end its turn.
	stopBound = 10 * time.Second
	// captureBound is how long taking the changes out may take.
	captureBound = 5 * time.Minute
)

// execution is one run being carried out by this process.
type execution struct {
	runner *Runner
	rec    journal.Record
	spec   task.Spec
	inbox  <-chan task.Input
	story  *story
	limits *limits

	// Of runs with an agent that talks: what the host offers it, and its turns.
	turns    *turns
	reporter *reporter
	services steps.Services
	mcp      *connecting // nil without MCP
	started  atomic.Bool // there is a session to say something to
	denied   denials     // by the network policy
	reading  *reading    // what gh in the sandbox reads with
	watcher  Watcher     // nil: nobody else is told

	box     sandbox.Sandbox
	client  *agent.Client
	repos   []repo.Prepared
	outcome *wire.Outcome // the agent's own end; nil if it never came
	changes []task.RepoResult
}

// run carries the run to its end and writes its terminal state. How it ended is
// journalled before anything is removed: a sandbox that is gone tells nothing to
// the runner that comes after a crash.
func (x *execution) run(ctx context.Context) (task.Result, error) {
	res, decided, err := x.verdict(ctx)
	if err != nil {
		return task.Result{}, err
	}
	if !decided {
		err := x.work(ctx)
		if errors.Is(err, ErrAbandoned) {
			return task.Result{}, x.abandon()
		}
		x.tellUnheard(ctx)
		if !x.forced() {
			x.capture(ctx)
			if err != nil {
				x.keepServerLog(ctx)
			}
		}
		res = x.result(ctx, err)
		if err := x.decide(ctx, res); err != nil {
			return task.Result{}, err
		}
	}
	res = x.withCleanup(res, x.cleanUp(ctx))
	x.closeServices()
	res.Denied = x.denied.all() // the services have told the last of it by now
	x.revoke(ctx)
	return x.finish(ctx, res)
}

// work does the steps within the limits, and returns what ended them.
func (x *execution) work(ctx context.Context) error {
	work, limits := arm(ctx, x.spec, x.rec.Started)
	x.limits = limits
	defer limits.disarm()
	stopInputs := x.takeInputs(ctx)
	defer stopInputs()
	stopRenewing := x.renewToken(work)
	defer stopRenewing()
	stopReading := x.reading.keep(work)
	defer stopReading()
	err := x.steps(work)
	if cause := context.Cause(work); cause != nil && err != nil {
		return cause // what ended the work, not what it broke
	}
	return err
}

// renewToken renews the run's access token from time to time, until the returned function
// is called. One that could not be renewed is tried again long before it is void.
func (x *execution) renewToken(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		first := steps.RenewEvery
		if seq, _ := x.story.log.Last(); seq > 0 {
			first = 0 // taken over: nobody knows how long nobody renewed it
		}
		t := time.NewTimer(first)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				t.Reset(steps.RenewEvery)
			}
			if err := x.s().RenewToken(ctx, x.spec.Run); err != nil && ctx.Err() == nil {
				x.story.notice("warn", "the access token was not renewed: "+err.Error())
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// verdictStep is the name under which the end of a run is journalled before its
// sandbox is removed.
const verdictStep = "verdict"

// verdict returns how the run ended, if an earlier runner had come that far.
func (x *execution) verdict(ctx context.Context) (res task.Result, decided bool, err error) {
	saved, decided, err := x.runner.c.Store.Step(context.WithoutCancel(ctx), x.spec.Run, verdictStep, "")
	if err != nil || !decided {
		return res, false, err
	}
	return res, true, json.Unmarshal(saved, &res)
}

func (x *execution) decide(ctx context.Context, res task.Result) error {
	saved, err := json.Marshal(res)
	if err != nil {
		return err
	}
	return x.runner.c.Store.StepDone(context.WithoutCancel(ctx), x.spec.Run, verdictStep, "", saved)
}

// abandon lets go of a run that another runner will take over.
func (x *execution) abandon() error {
	x.runner.setClient(x.spec.Run, nil)
	if x.client != nil {
		_ = x.client.Close() // the sandbox notices, and holds what its agent asks for from now on
	}
	x.closeServices()
	return errors.Join(ErrAbandoned, x.story.log.Sync())
}

// steps are the steps of a run, in order.
func (x *execution) steps(ctx context.Context) error {
	c, err := do(ctx, x, step{"context", "Preparing context", "Prepared context"},
		steps.ContextIn{Spec: x.spec}, x.s().Context)
	if err != nil {
		return err
	}
	if _, err = do(ctx, x, step{"token", "Creating access token", "Created access token"},
		steps.TokenIn{Run: x.spec.Run, Scopes: x.spec.Scopes}, x.s().Token); err != nil {
		return err
	}
	if err := x.maskAll(ctx); err != nil {
		return err
	}
	if err := x.openServices(ctx); err != nil {
		return err
	}
	w, err := x.workspace(ctx)
	if err != nil {
		return err
	}
	p, err := x.provision(ctx, steps.ProvisionIn{Spec: x.spec, Name: c.Name, Mounts: w.Mounts})
	if err != nil {
		return err
	}
	for _, n := range p.Notices {
		x.story.notice("warn", n)
	}
	if err := x.attach(ctx, p.Sandbox); err != nil {
		return err
	}
	if err := x.setUpRepos(ctx); err != nil {
		return err
	}
	if err := x.startAgent(ctx); err != nil {
		return err
	}
	x.started.Store(true)
	unpublish, err := x.publish(ctx)
	if err != nil {
		return err
	}
	defer unpublish()
	x.limits.watch()
	if err := x.follow(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// maskAll makes the masks anew, with the access token that there was none of before.
// Nothing has come from a sandbox yet.
func (x *execution) maskAll(ctx context.Context) error {
	values, err := x.runner.c.Secrets.All(context.WithoutCancel(ctx), x.spec.Run)
	if err != nil {
		return err
	}
	m := newMasker(values)
	x.story.setMask(m)
	if names := x.unmasked(m, values); len(names) > 0 {
		x.story.notice("warn", "not masked, the value is too short: "+strings.Join(names, ", "))
	}
	return nil
}

// unmasked are the names of the user's secrets whose values m lets through.
func (x *execution) unmasked(m *secret.Masker, values map[string]secret.String) []string {
	short := m.Short()
	return slices.DeleteFunc(slices.Clone(x.spec.Secrets), func(name string) bool {
		return !slices.Contains(short, values[name].Reveal())
	})
}

// workspace prepares the repositories on the host; a run without any has no such
// step.
func (x *execution) workspace(ctx context.Context) (steps.WorkspaceOut, error) {
	if len(x.spec.Repos) == 0 {
		return steps.WorkspaceOut{}, nil
	}
	out, err := do(ctx, x, step{"clone", "Cloning repository", "Cloned repository"},
		steps.WorkspaceIn{Spec: x.spec}, x.s().Workspace)
	if err != nil {
		return out, err
	}
	x.repos = out.Repos
	for _, r := range out.Repos {
		for _, n := range r.Notices {
			x.story.notice("warn", n)
		}
	}
	return out, nil
}

// provision makes the sandbox; its image is built first where that is all that was
// missing.
func (x *execution) provision(ctx context.Context, in steps.ProvisionIn) (steps.ProvisionOut, error) {
	st := step{"sandbox", "Setting up sandbox", "Set up sandbox"}
	out, err := do(ctx, x, st, in, x.create)
	if err == nil || !steps.NeedsImage(err, x.spec.Image) {
		return out, err
	}
	_, err = do(ctx, x, step{"image", "Building image " + x.spec.Image, "Built image " + x.spec.Image},
		steps.ImageIn{Spec: x.spec}, func(ctx context.Context, in steps.ImageIn) (steps.ImageOut, error) {
			return x.s().Image(ctx, in, func(line string) { x.story.notice("info", line) })
		})
	if err != nil {
		return out, err
	}
	return do(ctx, x, st, in, x.create)
}

// setUpRepos finishes the repositories inside the sandbox, where there is anything
// to finish: uncommitted work that comes along.
func (x *execution) setUpRepos(ctx context.Context) error {
	if !slices.ContainsFunc(x.repos, func(r repo.Prepared) bool { return r.Tree != "" }) {
		return nil
	}
	_, err := do(ctx, x, step{"repo", "Bringing uncommitted work along", "Brought uncommitted work along"},
		steps.RepoIn{Repos: x.repos}, func(ctx context.Context, in steps.RepoIn) (steps.RepoOut, error) {
			return x.s().Repo(ctx, x.client, in)
		})
	return err
}

// create makes the sandbox and keeps hold of it.
func (x *execution) create(ctx context.Context, in steps.ProvisionIn) (out steps.ProvisionOut, err error) {
	out, x.box, err = x.s().Create(ctx, in)
	return out, err
}

// attach opens the sandbox and its link.
func (x *execution) attach(ctx context.Context, id sandbox.ID) error {
	record := context.WithoutCancel(ctx)
	if err := x.runner.c.Store.SetSandbox(record, x.spec.Run, string(id)); err != nil {
		return err
	}
	if x.box != nil {
		return x.connect(ctx) // made just now
	}
	box, err := x.s().Open(ctx, x.spec, id)
	if errors.Is(err, sandbox.ErrNotFound) {
		return errs.New("runner.attach", errs.Internal, "insightscli run --start "+x.spec.Run.Short(),
			"the sandbox of run %s is gone", x.spec.Run.Short())
	}
	if err != nil {
		return err
	}
	x.box = box
	return x.connect(ctx)
}

// connect makes the link, once.
func (x *execution) connect(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, linkBound)
	defer cancel()
	c, err := x.s().Connect(bounded, x.spec.Run, x.box, x.services.Handlers)
	if err != nil {
		return fmt.Errorf("connect to the sandbox: %w", err)
	}
	x.client = c
	x.runner.setClient(x.spec.Run, c)
	x.reading.connected(bounded, c)
	return nil
}

func (x *execution) s() *steps.Steps { return x.runner.c.Steps }
