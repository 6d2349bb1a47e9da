package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// result composes the Result from the first error and the agent's own end.
func (x *execution) result(ctx context.Context, err error) task.Result {
	res := task.Result{
		Run: x.spec.Run, Task: x.spec.Task, State: task.StateCompleted,
		Provider: x.spec.Provider, Started: x.rec.Started, Repos: x.changes,
	}
	if x.outcome != nil {
		res.ExitCode, res.Signal = x.outcome.ExitCode, x.outcome.Signal
	}
	x.addTurns(ctx, &res)
	state, failure := x.turns.verdict()
	switch {
	case errors.Is(err, errIdle):
		res.IdleEnd = true
	case errors.Is(err, errWallClock):
		res.State, res.WallClockEnd = task.StateFailed, true
		x.explain(&res, err)
	case err != nil:
		res.State = task.StateFailed
		if k := errs.KindOf(err); k == errs.Canceled || k == errs.Terminated {
			res.State = task.StateCancelled
		}
		x.explain(&res, err)
	case failure != nil:
		res.State = task.StateFailed
		x.explain(&res, failure)
	case state == "" && x.outcome.Failed():
		res.State = task.StateFailed
		x.explain(&res, taskFailed(x.outcome))
	case slices.ContainsFunc(x.changes, func(r task.RepoResult) bool { return r.Error != "" }):
		// The work is done, and not all of it came out.
		x.explain(&res, errs.New("runner.capture", errs.Incomplete, "insightscli show "+x.spec.Run.Short(),
			"some changes were not taken out of the sandbox"))
	}
	return res
}

// addTurns adds what the agent said last, what it used and what was published for it.
func (x *execution) addTurns(ctx context.Context, res *task.Result) {
	used, _, err := x.runner.c.Store.Usage(context.WithoutCancel(ctx), x.spec.Run)
	if err == nil && used.Requests > 0 { // an account that cannot be read is shown by `show`, later
		res.Usage = &used
	}
	x.turns.mu.Lock()
	defer x.turns.mu.Unlock()
	res.Turn, res.Published = x.turns.last, slices.Clone(x.turns.published)
}

// withCleanup adds to the Result what clean-up left, and when it was over. The first
// error stands.
func (x *execution) withCleanup(res task.Result, cleanup error) task.Result {
	res.Finished = time.Now().UTC()
	if x.spec.Keep {
		res.Sandbox = string(x.sandboxID())
	}
	if cleanup == nil {
		return res
	}
	res.Cleanup = x.story.mask().MaskString(cleanup.Error())
	res.Sandbox = string(x.sandboxID())
	if res.Code == 0 {
		res.Code, res.Kind = errs.Incomplete.Code(), string(errs.Incomplete)
		res.Hint = "insightscli prune"
	}
	return res
}

// explain puts an error into the Result: its kind, code, text and hint.
func (x *execution) explain(res *task.Result, err error) {
	kind := errs.KindOf(err)
	res.Kind, res.Code = string(kind), kind.Code()
	res.Error = x.story.mask().MaskString(err.Error())
	res.Hint = errs.HintOf(err)
}

// taskFailed says how the task itself failed.
func taskFailed(out *wire.Outcome) error {
	const op = "runner.follow"
	switch {
	case out.Error != "":
		return errs.New(op, errs.TaskFailed, "", "%s", out.Error)
	case out.Signal != "":
		return errs.New(op, errs.TaskFailed, "", "the command was ended by %s", out.Signal)
	case out.ExitCode != nil:
		return errs.New(op, errs.TaskFailed, "", "the command exited with code %d", *out.ExitCode)
	}
	return errs.New(op, errs.TaskFailed, "", "the agent stopped: %s", out.StopReason)
}
