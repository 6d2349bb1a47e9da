package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// Bound is how long one check may take.
const Bound = 2 * time.Second

// Severity says what a problem keeps from working.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // runs fail
	Warning Severity = "warning" // something is impaired, or will be
)

// State is the answer of a check.
type State string

// The states.
const (
	OK      State = "ok"
	Problem State = "problem"
	Skipped State = "skipped" // does not concern this machine
	Fixed   State = "fixed"   // was a problem until Repair
)

// Finding is what a check found.
type Finding struct {
	State State
	Text  string // one line
	// Fix is the literal command, or the one thing to do; "" is the check's own.
	Fix string
	// Severity is "" for the check's own.
	Severity Severity
	// Away is set where something that is needed is not reachable.
	Away bool
	// Step is the step of package setup that repairs this safely; "" has none.
	Step string
}

// Check is one question to the machine.
type Check struct {
	Code     string // stable: scripts branch on it
	Title    string
	Severity Severity
	Fix      string
	// Elsewhere is set where the answer comes from something that may not be reachable.
	Elsewhere bool

	Look func(ctx context.Context) (Finding, error)
}

// Report is one row of the answer.
type Report struct {
	Code     string   `json:"code"`
	State    State    `json:"state"`
	Severity Severity `json:"severity,omitempty"`
	Title    string   `json:"title"`
	Finding  string   `json:"finding"`
	Fix      string   `json:"fix,omitempty"`
	Away     bool     `json:"unreachable,omitempty"`
	Step     string   `json:"fixed_by,omitempty"` // the step of the set-up that --fix carries out
}

// Run looks at everything at the same time and returns the reports in the order of
// the checks. A check that does not answer within [Bound] is a problem; its goroutine
// is not waited for, since nothing can end a look at a file system that hangs.
func Run(ctx context.Context, checks []Check) ([]Report, error) {
	bounded, cancel := context.WithTimeout(ctx, Bound)
	defer cancel()
	answers := make([]chan Report, len(checks))
	for i, c := range checks {
		answer := make(chan Report, 1)
		answers[i] = answer
		go func() { answer <- c.report(c.Look(bounded)) }()
	}
	late := time.NewTimer(Bound + 200*time.Millisecond)
	defer late.Stop()
	reports := make([]Report, len(checks))
	over := false
	for i, c := range checks {
		reports[i] = c.await(answers[i], late.C, &over)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return reports, nil
}

// await takes the answer of a check, or gives it up when the time for all is over.
func (c Check) await(answer <-chan Report, late <-chan time.Time, over *bool) Report {
	if !*over {
		select {
		case r := <-answer:
			return r
		case <-late:
			*over = true
		}
	}
	select {
	case r := <-answer:
		return r
	default:
		return c.report(Finding{}, context.DeadlineExceeded)
	}
}

// report makes a row of what was found. An error is a problem whose hint is the fix.
func (c Check) report(f Finding, err error) Report {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && errs.HintOf(err) == "":
		f = Finding{State: Problem, Text: "no answer within " + Bound.String(), Severity: f.Severity, Away: c.Elsewhere}
	case err != nil:
		away := errs.KindOf(err) == errs.Unavailable
		f = Finding{State: Problem, Text: err.Error(), Fix: errs.HintOf(err), Severity: f.Severity, Away: away, Step: f.Step}
	}
	r := Report{Code: c.Code, State: f.State, Title: c.Title, Finding: oneLine(f.Text)}
	if f.State != Problem {
		return r
	}
	r.Severity, r.Fix, r.Away, r.Step = f.Severity, oneLine(f.Fix), f.Away, f.Step
	if r.Severity == "" {
		r.Severity = c.Severity
	}
	if r.Fix == "" {
		r.Fix = c.Fix
	}
	return r
}

// Unreadable is the only report where the settings cannot be read: every other check
// would look at a machine that is not the user's.
func Unreadable(err error) []Report {
	c := Check{Code: "settings", Title: "The settings", Severity: Error, Fix: "insightscli config"}
	return []Report{c.report(Finding{}, err)}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Repair carries out the safe remedies of what Run found, one after the other, each
// once; apply carries out a step of package setup. Settings may have changed then, so
// that it takes new checks to see what it did: see [Compare].
func Repair(ctx context.Context, reports []Report, apply func(ctx context.Context, step string) error) (failed map[string]error, err error) {
	failed = map[string]error{}
	for _, r := range reports {
		if r.Step == "" {
			continue
		}
		if _, done := failed[r.Step]; !done {
			failed[r.Step] = apply(ctx, r.Step)
		}
		if ctx.Err() != nil {
			return failed, context.Cause(ctx)
		}
	}
	return failed, nil
}

// Compare marks, in what was found after a repair, what was a problem before, and
// tells what failed.
func Compare(before, after []Report, failed map[string]error) {
	if len(before) != len(after) { // the settings became readable, or ceased to be
		return
	}
	for i := range after {
		switch err := failed[before[i].Step]; {
		case before[i].State == Problem && after[i].State == OK:
			after[i].State = Fixed
		case after[i].State == Problem && err != nil:
			after[i].Finding += "; not repaired: " + oneLine(err.Error())
		}
	}
}

// Verdict is nil if nothing keeps runs from working; else it is of kind Unavailable
// where something needed is not reachable, and Incomplete otherwise.
func Verdict(reports []Report) error {
	n, kind := 0, errs.Incomplete
	for _, r := range reports {
		if r.State != Problem || r.Severity != Error {
			continue
		}
		n++
		if r.Away {
			kind = errs.Unavailable
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return errs.New("doctor.Run", kind, "", "1 problem keeps runs from working")
	}
	return errs.New("doctor.Run", kind, "", "%d problems keep runs from working", n)
}
