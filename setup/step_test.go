package setup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// fakeStep is a step that remembers whether it was applied.
type fakeStep struct {
	name    string
	found   Finding
	err     error // of Check
	applyTo error // of Apply
	applied int
}

func (s *fakeStep) Name() string                           { return s.name }
func (s *fakeStep) Check(context.Context) (Finding, error) { return s.found, s.err }
func (s *fakeStep) Apply(context.Context) (string, error)  { s.applied++; return "did it", s.applyTo }
func missingStep(f Finding) *fakeStep                      { f.State = Missing; return &fakeStep{name: "x", found: f} }

func TestRun(t *testing.T) {
	yes := func(context.Context, string, string, bool) (bool, error) { return true, nil }
	hint := errs.New("x", errs.Unavailable, "start it", "not\nthere")
	for name, tt := range map[string]struct {
		step    *fakeStep
		options Options
		want    Result
		applied int
	}{
		"ready":    {&fakeStep{name: "x", found: Finding{State: Ready, Text: "t", Hint: "h"}}, Options{}, Result{Outcome: There, Text: "t"}, 0},
		"needless": {&fakeStep{name: "x", found: Finding{State: Needless, Text: "t"}}, Options{}, Result{Outcome: Skipped, Text: "t"}, 0},
		"manual": {
			&fakeStep{name: "x", found: Finding{State: Manual, Text: "t", Hint: "h"}},
			Options{},
			Result{Outcome: Skipped, Text: "t", Hint: "h", Undone: true},
			0,
		},
		"missing":           {missingStep(Finding{Text: "t", Hint: "h", Diff: "d"}), Options{}, Result{Outcome: Done, Text: "did it"}, 1},
		"dry run":           {missingStep(Finding{Text: "t", Diff: "d"}), Options{DryRun: true}, Result{Outcome: ToDo, Text: "t", Diff: "d"}, 0},
		"nobody to ask":     {missingStep(Finding{Text: "t", Hint: "h", Ask: "?"}), Options{}, Result{Outcome: Skipped, Text: "t", Hint: "h", Undone: true}, 0},
		"somebody said yes": {missingStep(Finding{Text: "t", Ask: "?"}), Options{Confirm: yes}, Result{Outcome: Done, Text: "did it"}, 1},
		"cannot look":       {&fakeStep{name: "x", err: hint}, Options{}, Result{Outcome: Failed, Text: "not there", Hint: "start it", Undone: true, Err: hint}, 0},
		"cannot do it": {
			&fakeStep{name: "x", found: Finding{State: Missing}, applyTo: hint},
			Options{},
			Result{Outcome: Failed, Text: "not there", Hint: "start it", Undone: true, Err: hint},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.want.Step = "x"
			got, err := Run(t.Context(), []Step{tt.step}, tt.options)
			if err != nil || len(got) != 1 || got[0] != tt.want || tt.step.applied != tt.applied {
				t.Errorf("%+v, applied %d, %v", got, tt.step.applied, err)
			}
		})
	}
}

func TestRunGoesOnAfterAFailureAndEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	bad := &fakeStep{name: "bad", err: errors.New("no")}
	good, last := missingStep(Finding{}), missingStep(Finding{})
	var told []Outcome
	results, err := Run(ctx, []Step{bad, good, last}, Options{Report: func(r Result) {
		if told = append(told, r.Outcome); len(told) == 2 {
			cancel(why)
		}
	}})
	if !errors.Is(err, why) || len(results) != 2 || good.applied != 1 {
		t.Errorf("%v, %v", results, err)
	}
}

func TestUndone(t *testing.T) {
	if err := Undone([]Result{{Outcome: Skipped}, {Outcome: Done}}); err != nil {
		t.Errorf("%v", err)
	}
	cause := errors.New("no")
	err := Undone([]Result{{Step: "a", Undone: true, Err: cause}, {Step: "b"}, {Step: "c", Undone: true}})
	if errs.KindOf(err) != errs.Incomplete || err.Error() != "left undone: a, c" || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestSelect(t *testing.T) {
	steps := []Step{&fakeStep{name: "a"}, &fakeStep{name: "b"}, &fakeStep{name: "c"}}
	got, err := Select(steps, []string{"c", "a", "a"})
	if err != nil || len(got) != 2 || got[0].Name() != "a" || got[1].Name() != "c" || len(steps) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Select(steps, []string{"d"}); errs.KindOf(err) != errs.Usage || !strings.Contains(errs.HintOf(err), "a, b, c") {
		t.Errorf("%v", err)
	}
}
