package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

func check(code string, look func(context.Context) (Finding, error)) Check {
	return Check{Code: code, Title: code, Severity: Error, Fix: "fix " + code, Look: look}
}

// With everything broken the whole takes no longer than the bound of one check.
func TestChecksThatHangAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		var checks []Check
		for range 20 {
			checks = append(checks,
				Check{
					Code: "waits", Severity: Error, Fix: "fix waits", Elsewhere: true,
					Look: func(ctx context.Context) (Finding, error) { <-ctx.Done(); return Finding{}, ctx.Err() },
				},
				check("hangs", func(context.Context) (Finding, error) { <-release; return Finding{}, nil }))
		}
		checks = append(checks, check("answers", func(context.Context) (Finding, error) { return ok("fine") }))
		start := time.Now()
		reports, err := Run(t.Context(), checks)
		if took := time.Since(start); err != nil || took >= 3*time.Second {
			t.Fatalf("%v after %s", err, took)
		}
		for _, r := range reports[:40] {
			if r.State != Problem || r.Away != (r.Code == "waits") || r.Finding != "no answer within 2s" || r.Fix != "fix "+r.Code {
				t.Errorf("%+v", r)
			}
		}
		if last := reports[40]; last.State != OK {
			t.Errorf("%+v", last)
		}
	})
}

func TestAnErrorIsAProblemWithItsHint(t *testing.T) {
	reports, err := Run(t.Context(), []Check{
		check("a", func(context.Context) (Finding, error) {
			return Finding{Step: "env"}, errs.New("x", errs.Unavailable, "start it", "not\nthere")
		}),
		check("b", func(context.Context) (Finding, error) { return Finding{}, errors.New("wrong") }),
		check("c", func(context.Context) (Finding, error) { return skipped("no") }),
		{Code: "d", Severity: Warning, Look: func(context.Context) (Finding, error) { return problem("do", "it is", "bad") }},
	})
	want := []Report{
		{Code: "a", State: Problem, Severity: Error, Title: "a", Finding: "not there", Fix: "start it", Away: true, Step: "env"},
		{Code: "b", State: Problem, Severity: Error, Title: "b", Finding: "wrong", Fix: "fix b"},
		{Code: "c", State: Skipped, Title: "c", Finding: "no"},
		{Code: "d", State: Problem, Severity: Warning, Finding: "it is bad", Fix: "do"},
	}
	for i, r := range reports {
		if err != nil || r != want[i] {
			t.Errorf("%+v, want %+v; %v", r, want[i], err)
		}
	}
}

// Settings that cannot be read are a problem like any other: the same shape, a code.
func TestSettingsThatCannotBeReadAreTheOnlyProblem(t *testing.T) {
	got := Unreadable(errs.New("config.Load", errs.Config, "correct the file", ".env: it is a pipe"))
	if len(got) != 1 || got[0].Code != "settings" || got[0].Fix != "correct the file" || errs.KindOf(Verdict(got)) != errs.Incomplete {
		t.Errorf("%+v", got)
	}
	Compare(got, []Report{{State: OK}, {State: OK}}, nil) // a repair may make them readable
}

func TestVerdict(t *testing.T) {
	bad := Report{State: Problem, Severity: Error}
	away := Report{State: Problem, Severity: Error, Away: true}
	for name, tt := range map[string]struct {
		reports []Report
		code    int
	}{
		"well":                       {[]Report{{State: OK}, {State: Skipped}, {State: Fixed}}, 0},
		"a warning":                  {[]Report{{State: Problem, Severity: Warning, Away: true}}, 0},
		"an error":                   {[]Report{bad}, 3},
		"something is not reachable": {[]Report{away, bad}, 5},
	} {
		code := 0
		if err := Verdict(tt.reports); err != nil {
			code = errs.KindOf(err).Code()
		}
		if code != tt.code {
			t.Errorf("%s: %d, want %d", name, code, tt.code)
		}
	}
}

func TestRepairCarriesOutEachStepOnce(t *testing.T) {
	before := []Report{
		{Code: "a", State: Problem, Step: "env"},
		{Code: "b", State: Problem, Step: "env"},
		{Code: "c", State: Problem, Step: "flag"},
		{Code: "d", State: Problem},
		{Code: "e", State: OK},
	}
	var applied []string
	failed, err := Repair(t.Context(), before, func(_ context.Context, step string) error {
		applied = append(applied, step)
		if step == "flag" {
			return errors.New("no store")
		}
		return nil
	})
	if err != nil || strings.Join(applied, " ") != "env flag" {
		t.Fatalf("%v, %v", applied, err)
	}
	after := []Report{
		{Code: "a", State: OK},
		{Code: "b", State: Problem, Finding: "still"},
		{Code: "c", State: Problem, Finding: "off"},
		{Code: "d", State: Problem, Finding: "x"},
		{Code: "e", State: OK},
	}
	Compare(before, after, failed)
	if after[0].State != Fixed || after[1].Finding != "still" || after[2].Finding != "off; not repaired: no store" ||
		after[3].Finding != "x" || after[4].State != OK {
		t.Errorf("%+v", after)
	}
}

func TestRepairEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Repair(ctx, []Report{{State: Problem, Step: "a"}, {State: Problem, Step: "b"}}, func(context.Context, string) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
