package background

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/task"
)

// failing carries out no run: the disk is full, say.
type failing struct{}

func (failing) Execute(context.Context, task.ID, <-chan task.Input, task.Sink) (task.Result, error) {
	return task.Result{}, errors.New("no space left on device")
}

// A run that its runner could not carry out stays that runner's, and nobody else would
// ever take it: it is tried again after a while.
func TestARunThatCouldNotBeCarriedOutIsTriedAgain(t *testing.T) {
	reported := 0
	s := &server{
		c: Config{
			Executor: failing{}, Report: func(task.ID, error) { reported++ },
			Owner: &owner.Owner{Info: owner.Info{ID: "me"}},
		},
		knock: make(chan struct{}, 1), live: map[task.ID]bool{}, failed: map[task.ID]time.Time{},
	}
	rec := journal.Record{Owner: "me", Spec: task.Spec{Run: task.NewID()}}
	if s.retries(rec) {
		t.Error("before anything failed")
	}
	s.carryOut(t.Context(), rec.Spec.Run)
	if reported != 1 || s.retries(rec) {
		t.Errorf("at once, with %d reports", reported)
	}
	s.failed[rec.Spec.Run] = time.Now().Add(-2 * retryPause)
	if !s.retries(rec) {
		t.Error("not after a while")
	}
	rec.Owner = "another"
	if s.retries(rec) {
		t.Error("although it is another's now")
	}
}
