package background_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// executor carries out runs by finishing them, when it may.
type executor struct {
	store   *journal.Store
	may     chan struct{} // closed: runs end at once
	started chan task.ID
	ended   chan error // why a run was cut short
}

func (e *executor) Execute(ctx context.Context, run task.ID, _ <-chan task.Input, _ task.Sink) (task.Result, error) {
	e.started <- run
	select {
	case <-e.may:
	case <-ctx.Done():
		e.ended <- context.Cause(ctx)
		return task.Result{}, context.Cause(ctx)
	}
	res := task.Result{Run: run, State: task.StateCompleted}
	return res, e.store.Finish(context.WithoutCancel(ctx), run, res)
}

// place is a state directory in which background runners can be started.
type place struct {
	t        *testing.T
	dir      string
	store    *journal.Store
	executor *executor
	client   background.Client
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p := &place{t: t, dir: dir, store: journal.New(db.DB, dir)}
	p.executor = &executor{store: p.store, may: make(chan struct{}), started: make(chan task.ID, 9), ended: make(chan error, 9)}
	p.client = background.Client{Dir: dir, Version: "1", Start: func(context.Context) error { return errors.New("nobody may start one") }}
	return p
}

// serve starts a runner and returns what it ended with.
func (p *place) serve(ctx context.Context, version string, idle time.Duration) <-chan error {
	p.t.Helper()
	me, err := owner.Acquire(ctx, p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		err := background.Serve(ctx, background.Config{
			Dir: p.dir, Version: version, Store: p.store, Owner: me, Executor: p.executor, Idle: idle,
			Report: func(run task.ID, err error) { p.t.Logf("run %s: %v", run, err) },
		}, func() { close(ready) })
		done <- errors.Join(err, me.Release())
	}()
	select {
	case <-ready:
	case err := <-done:
		done <- err
	}
	return done
}

func (p *place) submit(detached bool, ownerID string) task.ID {
	p.t.Helper()
	spec := task.Spec{V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1, Detached: detached}
	if err := p.store.Create(p.t.Context(), spec, nil); err != nil {
		p.t.Fatal(err)
	}
	if ownerID != "" {
		if ok, err := p.store.Claim(p.t.Context(), spec.Run, "", ownerID); !ok || err != nil {
			p.t.Fatalf("claim: %v %v", ok, err)
		}
	}
	return spec.Run
}

func (p *place) takes(run task.ID) {
	p.t.Helper()
	select {
	case got := <-p.executor.started:
		if got != run {
			p.t.Fatalf("it took %s, want %s", got, run)
		}
	case <-time.After(20 * time.Second):
		p.t.Fatal("it took nothing")
	}
}

// idle waits until the runner has no run.
func (p *place) idle() {
	p.t.Helper()
	for {
		st, err := p.client.Status(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		if len(st.Runs) == 0 {
			return
		}
	}
}

func TestItTakesWhatNobodyOwns(t *testing.T) {
	p := newPlace(t)
	p.submit(false, "")                           // recorded with --no-start: not yet
	dead := p.submit(false, string(task.NewID())) // its owner has no file: it is dead
	me, err := owner.Acquire(t.Context(), p.dir)
	if err != nil {
		t.Fatal(err)
	}
	p.submit(false, me.ID) // owned by somebody who lives
	close(p.executor.may)
	done := p.serve(t.Context(), "1", 0)
	p.takes(dead)

	queued := p.submit(true, "")
	if err := p.client.Knock(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.takes(queued)
	p.idle()
	if err := p.client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(p.executor.started) != 0 {
		t.Errorf("it took %s too", <-p.executor.started)
	}
	if err := me.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestThereIsOneAStateDirectory(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := p.serve(ctx, "1", 0)
	err := <-p.serve(ctx, "1", 0)
	if !errors.Is(err, background.ErrTaken) || errs.KindOf(err) != errs.Conflict {
		t.Errorf("the second: %v", err)
	}
	cancel()
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestItEndsItselfWhenIdle(t *testing.T) {
	p := newPlace(t)
	if err := <-p.serve(t.Context(), "1", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Status(t.Context()); !errors.Is(err, background.ErrAbsent) {
		t.Errorf("status: %v", err)
	}
}

func TestItIsNotStoppedWithRunsAndLeavesThemWhenItEnds(t *testing.T) {
	p := newPlace(t)
	run := p.submit(true, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := p.serve(ctx, "1", time.Millisecond)
	p.takes(run)
	if err := p.client.Stop(t.Context()); errs.KindOf(err) != errs.Conflict {
		t.Errorf("stop: %v", err)
	}
	cancel(runner.ErrAbandoned)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if cause := <-p.executor.ended; !errors.Is(cause, runner.ErrAbandoned) {
		t.Errorf("the run was cut short with %v", cause)
	}
}

// A runner that a command started ends itself without work, until somebody wants one
// that stays.
func TestAnIdleRunnerCanBeMadeToStay(t *testing.T) {
	p := newPlace(t)
	done := p.serve(t.Context(), "1", time.Hour)
	if err := p.client.Stay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.client.Stay(t.Context()); errs.KindOf(err) != errs.Conflict {
		t.Errorf("one that stays already: %v", err)
	}
	if err := p.client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Without its socket nobody could stop a runner: it ends, and lets go of its runs.
func TestARunnerThatCannotBeReachedEnds(t *testing.T) {
	p := newPlace(t)
	run := p.submit(true, "")
	me, err := owner.Acquire(t.Context(), p.dir)
	if err != nil {
		t.Fatal(err)
	}
	// A directory in the place of the socket.
	if err := os.MkdirAll(filepath.Join(p.dir, "owners", me.ID+".sock", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	err = background.Serve(t.Context(), background.Config{
		Dir: p.dir, Version: "1", Store: p.store, Owner: me, Executor: p.executor, Report: func(task.ID, error) {},
	}, func() { t.Error("it says that it is ready") })
	if err == nil {
		t.Error("no error")
	}
	select {
	case cause := <-p.executor.ended:
		if !errors.Is(cause, runner.ErrAbandoned) {
			t.Errorf("run %s was cut short with %v", run, cause)
		}
	default: // it was not even taken
	}
	_ = me.Release()
}

// A runner of another version finishes what it owns and is out of the way of the
// one that is started in its place.
func TestItHandsOverToAnotherVersion(t *testing.T) {
	p := newPlace(t)
	old := p.submit(true, "")
	first := p.serve(t.Context(), "0", 0)
	p.takes(old)
	var second <-chan error
	p.client.Start = func(ctx context.Context) error {
		second = p.serve(t.Context(), "1", 0)
		return nil
	}
	if err := p.client.Knock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err := p.client.Status(t.Context()); err != nil || st.Version != "1" {
		t.Fatalf("status %+v, %v", st, err)
	}
	close(p.executor.may)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := p.client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// Somebody removes the state directory: runs must end, or their sandboxes would be
// nobody's for ever.
func TestItCancelsRunsWhenTheStateDirectoryIsGone(t *testing.T) {
	p := newPlace(t)
	run := p.submit(true, "")
	done := p.serve(t.Context(), "1", 0)
	p.takes(run)
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	if cause := <-p.executor.ended; errs.KindOf(cause) != errs.Canceled {
		t.Errorf("the run was cut short with %v", cause)
	}
	<-done // its files are gone; the error says so
}
