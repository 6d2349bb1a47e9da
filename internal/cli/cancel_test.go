package cli

import (
	"testing"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/task"
)

// The wish to end a run that nobody has begun was once recorded only after the run had
// been claimed for that: had the process died in between, the run would have been
// carried out.
func TestACancelIsRecordedBeforeTheRunIsClaimed(t *testing.T) {
	_, s, rec, _ := recorded(t)
	if err := s.cancel(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	ins, err := s.store.Inputs(t.Context(), rec.Spec.Run)
	if err != nil || len(ins) != 1 || ins[0].Kind != task.InputCancel {
		t.Errorf("inputs %v, %v", ins, err)
	}
	if rec, err = s.store.Run(t.Context(), rec.Spec.Run); err != nil || rec.State != task.StateCancelled {
		t.Errorf("record %+v, %v", rec, err)
	}
	if left, err := owner.List(s.dir); err != nil || len(left) != 0 {
		t.Errorf("owners left: %v, %v", left, err)
	}
	if runs, err := s.store.Runs(t.Context(), journal.Filter{Live: true}); err != nil || len(runs) != 0 {
		t.Errorf("live runs %v, %v", runs, err)
	}
}
