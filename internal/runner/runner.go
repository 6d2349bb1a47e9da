// Package runner carries out runs in this process: the seven steps in order, each
// journalled before the next begins, with the time limits, the inputs and the
// clean-up around them.
//
// A run survives its runner. Every step's result is in state.db under the step's
// name and input hash before the next step starts, every event is in the run's log
// before anybody sees it, and the sandbox goes on without a host; so [Runner.Execute]
// called again, by whichever process owns the run now, goes on where the last one
// stopped.
//
// The rules that keep this true:
//   - a run is executed by its owner only, and ownership is taken by compare-and-set
//     while the owner's lock is held;
//   - a cancel and every input is journalled before it is acted on;
//   - the wall clock is armed before the provider is called; the idle clock starts when
//     there is an agent, anew for a run that was taken over;
//   - clean-up runs on a bounded context that cancellation does not reach; the first
//     error wins and a clean-up error is reported beside it;
//   - a terminal state is always written, after the finished event.
//
// The package knows ports, never a driver, and prints nothing.
package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// ErrAbandoned is the cause of a done context that ends the carrying out of a run and
// not the run: its sandbox goes on, and another runner takes it over.
var ErrAbandoned = errors.New("this runner ends")

// Config is what a Runner needs.
type Config struct {
	Steps   *steps.Steps
	Store   *journal.Store
	Secrets *Secrets
	// Owner is the id under which this process owns runs.
	Owner string
	// Force is closed when the user asked a second time: clean-up then has two
	// seconds. It may be nil.
	Force <-chan struct{}
	// Watch returns who else is shown the events of a run; nil: nobody. The values are
	// those that were sealed with it, and notify tells the people of the run something.
	Watch func(ctx context.Context, spec task.Spec, values map[string]secret.String, notify func(level, message string)) Watcher
}

// Watcher is shown every event of a run, in order, and waits for nothing.
type Watcher interface {
	// Replay takes an event that an earlier runner has recorded. All of them come before
	// the first Emit.
	Replay(ev task.Event)
	// Emit takes an event when it is in the log.
	Emit(ev task.Event)
	// Lost says, right before the end of the run, what it could not do; empty: nothing.
	Lost() string
	// Close ends it, after the terminal state was written, or when the run is let go.
	Close()
}

// Runner executes runs. Its methods may be called at the same time for different
// runs.
type Runner struct {
	c Config

	mu    sync.Mutex
	live  map[task.ID]*agent.Client // runs of this process that have a link
	turns map[task.ID]chan struct{} // see turn
}

// New returns a Runner.
func New(c Config) *Runner {
	return &Runner{c: c, live: map[task.ID]*agent.Client{}, turns: map[task.ID]chan struct{}{}}
}

// Submit records a run, with its secrets sealed, in one transaction. It starts
// nothing.
func (r *Runner) Submit(ctx context.Context, spec task.Spec, values map[string]secret.String) error {
	sealed, err := r.sealed(spec, values)
	if err != nil {
		return err
	}
	return r.c.Store.Create(ctx, spec, sealed)
}

// sealed returns the sealed secrets of a new run, the keys of its link among them.
func (r *Runner) sealed(spec task.Spec, values map[string]secret.String) (map[string][]byte, error) {
	key, err := steps.NewLinkKey(spec.Run)
	if err != nil {
		return nil, err
	}
	all := map[string]secret.String{steps.SecretLinkKey: key}
	for name, v := range values {
		all[name] = v
	}
	return r.c.Secrets.seal(spec.Run, all)
}

// Run submits, claims and executes a run. The error is about what kept the run from
// being recorded or finished; how the run itself went is in the Result.
func (r *Runner) Run(ctx context.Context, spec task.Spec, values map[string]secret.String, inbox <-chan task.Input, screen task.Sink) (task.Result, error) {
	if ctx.Err() != nil {
		return task.Result{}, context.Cause(ctx)
	}
	// From here on there is a run, which must not be left to nobody: a cancellation
	// that arrives now is Execute's.
	sealed, err := r.sealed(spec, values)
	if err != nil {
		return task.Result{}, err
	}
	if err := r.c.Store.CreateBegun(context.WithoutCancel(ctx), spec, sealed, r.c.Owner); err != nil {
		return task.Result{}, err
	}
	return r.Execute(ctx, spec.Run, inbox, screen)
}

// Execute carries a run that this process owns to its end, from wherever it stands.
// When ctx is done the run is cancelled and cleaned up; Execute then still returns
// its Result.
func (r *Runner) Execute(ctx context.Context, id task.ID, inbox <-chan task.Input, screen task.Sink) (task.Result, error) {
	// What is written about a run must be written also when ctx is done.
	record := context.WithoutCancel(ctx)
	rec, err := r.c.Store.Run(record, id)
	if err != nil {
		return task.Result{}, err
	}
	if rec.State.Terminal() && rec.Result != nil {
		return *rec.Result, nil
	}
	log, err := r.c.Store.OpenLog(record, rec)
	if err != nil {
		return task.Result{}, fmt.Errorf("open the log of run %s: %w", id.Short(), err)
	}
	defer func() { _ = log.Close() }() // everything that matters was synced

	// The finished event is written before the terminal state.
	if res, ok, err := r.c.Store.FinishedInLog(record, rec); err != nil {
		return task.Result{}, err
	} else if ok {
		return res, r.c.Store.Finish(record, id, res)
	}
	if !rec.Started.IsZero() && rec.Version != build.Get().Version {
		return r.refuse(ctx, rec, log, screen)
	}
	if rec, err = r.begin(record, rec); err != nil {
		return task.Result{}, err
	}
	x, err := r.newExecution(record, rec, log, screen)
	if err != nil {
		return task.Result{}, err
	}
	defer x.closeWatcher()
	x.inbox = inbox
	return x.run(ctx)
}

// begin notes that a run has begun, unless it had, and returns it with its start time.
func (r *Runner) begin(ctx context.Context, rec journal.Record) (journal.Record, error) {
	if rec.State == task.StateInProgress && !rec.Started.IsZero() {
		return rec, nil
	}
	if err := r.c.Store.Begin(ctx, rec.Spec.Run); err != nil {
		return rec, err
	}
	return r.c.Store.Run(ctx, rec.Spec.Run)
}

func (r *Runner) newExecution(ctx context.Context, rec journal.Record, log *journal.Log, screen task.Sink) (*execution, error) {
	values, err := r.c.Secrets.All(ctx, rec.Spec.Run)
	if err != nil {
		return nil, err
	}
	x := &execution{
		runner: r, rec: rec, spec: rec.Spec,
		story: newStory(rec.Spec.Run, log, screen, newMasker(values)),
	}
	x.turns, x.reading = newTurns(x), newReading(x)
	if r.c.Watch != nil {
		x.watcher = r.c.Watch(ctx, x.spec, values, x.story.notice)
	}
	seen := x.turns.event
	if !x.spec.Agent.Drives() {
		seen = x.denied.event
	}
	if err := x.replay(ctx, seen); err != nil {
		x.closeWatcher()
		return nil, err
	}
	if w := x.watcher; w != nil {
		first := seen
		seen = func(ev task.Event) {
			first(ev)
			w.Emit(ev)
		}
	}
	x.story.showTo(seen)
	return x, nil
}

// replay reads what happened before this runner took the run over.
func (x *execution) replay(ctx context.Context, seen func(task.Event)) error {
	if x.spec.Agent.Drives() {
		if err := x.turns.recall(ctx); err != nil {
			return err
		}
	}
	if last, _ := x.story.log.Last(); last == 0 {
		return nil
	}
	err := x.runner.c.Store.ReadLog(ctx, x.rec, 0, func(_ []byte, ev task.Event) error {
		seen(ev)
		if x.watcher != nil {
			x.watcher.Replay(ev)
		}
		return nil
	})
	if errs.KindOf(err) == errs.Incomplete {
		return nil // lines are damaged: what can be known of them is known
	}
	return err
}

func (x *execution) closeWatcher() {
	if x.watcher != nil {
		x.watcher.Close()
	}
}

// refuse ends a run that another version began: a journal is replayed by the version
// that wrote it only, because a step may mean something else now.
func (r *Runner) refuse(ctx context.Context, rec journal.Record, log *journal.Log, screen task.Sink) (task.Result, error) {
	x, err := r.newExecution(context.WithoutCancel(ctx), rec, log, screen)
	if err != nil {
		return task.Result{}, err
	}
	err = errs.New("runner.Execute", errs.Conflict, "start the run again",
		"run %s was begun by version %s and cannot be continued by version %s", rec.Spec.Run.Short(), rec.Version, build.Get().Version)
	res := x.withCleanup(x.result(ctx, err), x.cleanUp(ctx))
	x.revoke(ctx)
	defer x.closeWatcher()
	return x.finish(ctx, res)
}

// Client returns the link to a run that this process executes, for those who want
// to look inside.
func (r *Runner) Client(id task.ID) (*agent.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.live[id]; ok {
		return c, nil
	}
	return nil, errs.New("runner.Client", errs.Conflict, "insightscli show "+id.Short(),
		"run %s has no live sandbox", id.Short())
}

func (r *Runner) setClient(id task.ID, c *agent.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c == nil {
		delete(r.live, id)
		delete(r.turns, id)
		return
	}
	r.live[id] = c
}
