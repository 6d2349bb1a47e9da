package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/task"
)

// followUp lets the services say more to the agent once it has come to rest. Until they
// have nothing more to say, a run that would end after its last turn goes on.
func (x *execution) followUp(ctx context.Context) {
	following, cancel := x.untilLate(ctx)
	defer cancel()
	err := x.services.Follow(following, &followed{x})
	switch {
	case ctx.Err() != nil:
		return // the run may go on elsewhere: its agent is not to be ended for this
	case following.Err() != nil:
		x.story.notice("info", "CI is not followed further: "+context.Cause(following).Error())
	case err != nil:
		x.story.notice("warn", "CI is not followed further: "+err.Error())
	}
	x.turns.followed(false)
}

// lateBound is how long before the wall clock ends a run its follow-up does, so that work
// which is done does not count as failed.
const lateBound = 30 * time.Second

var errLate = errors.New("the run's time is nearly up")

// untilLate returns a context that ends shortly before the run's wall clock does.
func (x *execution) untilLate(ctx context.Context) (context.Context, context.CancelFunc) {
	wall := x.spec.Timeout.Std()
	if wall <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, x.rec.Started.Add(wall-min(lateBound, wall/4)), errLate)
}

// followed is a run for those who follow it up.
type followed struct{ x *execution }

var _ steps.Followed = (*followed)(nil)

// Idle implements steps.Followed.
func (f *followed) Idle(ctx context.Context) (time.Time, bool) {
	since, resting := f.x.turns.resting()
	if !resting {
		return time.Time{}, false
	}
	waiting, err := f.x.turns.waiting(ctx)
	return since, !waiting && err == nil
}

// Pulls implements steps.Followed.
func (f *followed) Pulls() []task.Published {
	f.x.turns.mu.Lock()
	defer f.x.turns.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.x.turns.published), func(p task.Published) bool { return p.Pull == 0 })
}

// Said implements steps.Followed.
func (f *followed) Said(ctx context.Context) ([]task.Input, error) {
	return f.x.runner.c.Store.Messages(ctx, f.x.spec.Run)
}

// Say implements steps.Followed.
func (f *followed) Say(ctx context.Context, in task.Input) error {
	_, err := f.x.runner.c.Store.AddInput(ctx, f.x.spec.Run, in)
	return err
}

// Tell implements steps.Followed.
func (f *followed) Tell(kind task.Kind, payload any) { f.x.story.tell(kind, payload) }

// followed notes whether the run is followed up.
func (t *turns) followed(following bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.following = following
	t.poke()
}

// resting is since when the agent has had no turn.
func (t *turns) resting() (since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current, _ := t.tracker.Current()
	return t.rested, current == 0 && t.over[""] && len(t.tracker.Pending()) == 0 && !t.leaving
}

// held reports whether the run goes on only because it is followed up: then it is not
// idle.
func (t *turns) held() bool {
	_, resting := t.resting()
	t.mu.Lock()
	defer t.mu.Unlock()
	return resting && t.following
}

// yields reports whether an end waits for the follow-up: that of an agent which calls its
// work done. t.mu is held.
func (t *turns) yields(f *final) bool {
	return t.following && !f.now && f.state == task.StateCompleted
}

// lasts reports whether an end that was asked for leaves no turn for messages.
func (t *turns) lasts(in task.Input) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.yields(&final{state: endState(in.Value), now: in.Name != task.EndAfterTurn})
}
