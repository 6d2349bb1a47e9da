package cli

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// What works is tried once in the life of a state directory, what does not once a process,
// and what says nothing about the runtime every time.
func TestRuntimesAreTriedOnce(t *testing.T) {
	known := filepath.Join(t.TempDir(), "cache", "runtimes", "key")
	tried := 0
	trial := func(err error) func(context.Context) error {
		return func(context.Context) error { tried++; return err }
	}
	var first trials
	gone := errs.New("x", errs.Unavailable, "", "no engine")
	for range 2 {
		if err := first.try(t.Context(), known, trial(gone)); !errors.Is(err, gone) {
			t.Error(err)
		}
	}
	bad := &unfit{errs.New("x", errs.Config, "use another", "nothing arrives")}
	for range 2 {
		err := first.try(t.Context(), known, trial(bad))
		if errs.KindOf(err) != errs.Config || errs.HintOf(err) != "use another" {
			t.Error(err)
		}
	}
	if tried != 3 {
		t.Errorf("tried %d times, want 3", tried)
	}
	for range 2 { // somebody has mended it, and another process finds out
		var next trials
		if err := next.try(t.Context(), known, trial(nil)); err != nil {
			t.Error(err)
		}
	}
	if tried != 4 {
		t.Errorf("tried %d times, want 4", tried)
	}
}

func TestDoctorSandboxFlags(t *testing.T) {
	for _, o := range []*doctorOptions{
		{sandbox: true, fix: true},
		{settings: map[string]string{"INSIGHTSCLI_RUNTIME": "runsc"}},
	} {
		if err := o.validate(); errs.KindOf(err) != errs.Usage {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := (&doctorOptions{sandbox: true, settings: map[string]string{"SANDBOX_PROVIDER": "local"}}).validate(); err != nil {
		t.Error(err)
	}
}
