package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Step is one thing that a prepared machine has.
type Step interface {
	// Name is what --only and the table call it.
	Name() string
	// Check looks and changes nothing.
	Check(ctx context.Context) (Finding, error)
	// Apply does what Check found to be missing, and says in one line what it did. It
	// is called only after a Check that found [Missing], and may be called again.
	Apply(ctx context.Context) (string, error)
}

// State is what a step found.
type State string

// The states of a step before it is applied.
const (
	Ready    State = "ready"    // there is nothing to do
	Missing  State = "missing"  // Apply does it
	Needless State = "needless" // this machine does not need it
	Manual   State = "manual"   // only the user can do it
)

// Finding is the answer of a Check.
type Finding struct {
	State State
	Text  string // one line: what is there, or what is missing
	Hint  string // what the user can do if it stays like this
	Diff  string // how Apply would change a file, secrets masked
	// Ask is the question to put before Apply; "" asks nothing.
	Ask string
	// Person is set where Apply cannot go without somebody at the terminal.
	Person bool
}

// Outcome is what became of a step.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	There   Outcome = "already there"
	ToDo    Outcome = "to do" // in a dry run
	Skipped Outcome = "skipped"
	Failed  Outcome = "failed"
)

// Result is one row of the table.
type Result struct {
	Step    string  `json:"step"`
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"`
	Hint    string  `json:"hint,omitempty"`
	Diff    string  `json:"diff,omitempty"` // in a dry run
	// Undone is set where something that background agents need is still missing.
	Undone bool `json:"undone"`
	// Err is why the step failed.
	Err error `json:"-"`
}

// Options say how steps are run.
type Options struct {
	// DryRun only looks.
	DryRun bool
	// Confirm answers the question of a step; nil answers no. With person, somebody
	// has to be at the terminal for what follows.
	Confirm func(ctx context.Context, step, question string, person bool) (bool, error)
	// Report is told the outcome of each step when it is known; nil is nobody.
	Report func(Result)
}

// Run carries out the steps in order. It ends early only when ctx does; every other
// error is the outcome of its step.
func Run(ctx context.Context, steps []Step, o Options) ([]Result, error) {
	var results []Result
	for _, s := range steps {
		r := run(ctx, s, o)
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		results = append(results, r)
		if o.Report != nil {
			o.Report(r)
		}
	}
	return results, nil
}

func run(ctx context.Context, s Step, o Options) Result {
	found, err := s.Check(ctx)
	r := Result{Step: s.Name(), Text: found.Text, Hint: found.Hint}
	switch {
	case err != nil:
		return r.failed(err)
	case found.State == Ready:
		r.Outcome, r.Hint = There, ""
		return r
	case found.State == Needless:
		r.Outcome = Skipped
		return r
	case found.State == Manual:
		// A dry run leaves nothing undone: it was not to do anything.
		r.Outcome, r.Undone = Skipped, !o.DryRun
		return r
	case o.DryRun:
		r.Outcome, r.Diff = ToDo, found.Diff
		return r
	}
	yes, err := confirmed(ctx, s.Name(), found, o)
	if err != nil {
		return r.failed(err)
	}
	if !yes {
		r.Outcome, r.Undone = Skipped, true
		return r
	}
	text, err := s.Apply(ctx)
	if err != nil {
		return r.failed(err)
	}
	r.Outcome, r.Text, r.Hint = Done, text, ""
	return r
}

func confirmed(ctx context.Context, step string, f Finding, o Options) (bool, error) {
	if f.Ask == "" {
		return true, nil
	}
	if o.Confirm == nil {
		return false, nil
	}
	return o.Confirm(ctx, step, f.Ask, f.Person)
}

func (r Result) failed(err error) Result {
	r.Outcome, r.Undone, r.Err = Failed, true, err
	r.Text = strings.Join(strings.Fields(err.Error()), " ")
	if hint := errs.HintOf(err); hint != "" {
		r.Hint = hint
	}
	return r
}

// Select returns the steps with the given names, in their own order; all of them
// without names.
func Select(steps []Step, names []string) ([]Step, error) {
	if len(names) == 0 {
		return steps, nil
	}
	var known []string
	for _, s := range steps {
		known = append(known, s.Name())
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, errs.New("setup.Select", errs.Usage, "use one of: "+strings.Join(known, ", "), "there is no step %q", n)
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return !slices.Contains(names, s.Name()) }), nil
}

// Undone returns nil if nothing was left undone, else an error of kind Incomplete
// that wraps why steps failed.
func Undone(results []Result) error {
	var names []string
	var all []error
	for _, r := range results {
		if r.Undone {
			names = append(names, r.Step)
			all = append(all, r.Err)
		}
	}
	if len(names) == 0 {
		return nil
	}
	text := fmt.Sprintf("left undone: %s", strings.Join(names, ", "))
	return &errs.Error{
		Op: "setup.Run", Kind: errs.Incomplete, Hint: "do what is said above, then run the command again",
		Err: &undone{text, errors.Join(all...)},
	}
}

// undone says what was left in one line, and keeps the reasons for errors.Is.
type undone struct {
	text  string
	cause error
}

func (u *undone) Error() string { return u.text }
func (u *undone) Unwrap() error { return u.cause }
