package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/Insights/insightscli/internal/task"
)

// step is how a step is called in the journal and for people.
type step struct {
	name, doing, done string
}

// do carries out one step unless its result is journalled, and journals it.
func do[In, Out any](ctx context.Context, x *execution, st step, in In, f func(context.Context, In) (Out, error)) (Out, error) {
	var out Out
	if err := context.Cause(ctx); err != nil {
		return out, err
	}
	store, record := x.runner.c.Store, context.WithoutCancel(ctx)
	hash, err := inputHash(in)
	if err != nil {
		return out, err
	}
	saved, done, err := store.Step(record, x.spec.Run, st.name, hash)
	if err != nil {
		return out, err
	}
	if done {
		return out, json.Unmarshal(saved, &out)
	}
	return show(ctx, x, st, in, func(ctx context.Context, in In) (Out, error) {
		out, err := f(ctx, in)
		if err != nil {
			return out, err
		}
		saved, err := json.Marshal(out)
		if err != nil {
			return out, err
		}
		return out, store.StepDone(record, x.spec.Run, st.name, hash, saved)
	})
}

// show carries out one step and tells of its beginning and its end.
func show[In, Out any](ctx context.Context, x *execution, st step, in In, f func(context.Context, In) (Out, error)) (Out, error) {
	x.story.step(st.name, task.StepInProgress, st.doing, "")
	out, err := f(ctx, in)
	if err != nil {
		x.story.step(st.name, task.StepFailed, st.doing, detailOf(ctx, err))
		return out, err
	}
	x.story.step(st.name, task.StepCompleted, st.done, "")
	return out, nil
}

func detailOf(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		return cause.Error()
	}
	return err.Error()
}

// inputHash identifies what a step was asked, so that a journal is never replayed
// for another question.
func inputHash(in any) (string, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
