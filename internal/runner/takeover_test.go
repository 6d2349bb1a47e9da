package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/task"
)

// dies carries out a run until on says so; then its process is gone.
func (r *rig) dies(spec task.Spec, on func(ev task.Event) bool) {
	r.t.Helper()
	ctx, abandon := context.WithCancelCause(r.t.Context())
	defer abandon(nil)
	_, err := r.runner.Run(ctx, spec, nil, nil, &recorder{on: func(ev task.Event) {
		if on(ev) {
			abandon(runner.ErrAbandoned)
		}
	}})
	if !errors.Is(err, runner.ErrAbandoned) {
		r.t.Fatalf("it lived on: %v", err)
	}
}

// heir returns the result of the run under the next runner.
func (r *rig) heir(run task.ID, change func(*steps.Steps)) task.Result {
	r.t.Helper()
	if ok, err := r.store.Claim(r.t.Context(), run, "me", "other"); !ok || err != nil {
		r.t.Fatalf("claim: %v %v", ok, err)
	}
	res, err := r.newRunnerWith("other", change).Execute(r.t.Context(), run, nil, &recorder{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.stored(run)
	r.nothingLeft(run)
	return res
}

// The runner dies when it has recorded that a turn of a session failed, and before it
// could end the agent: the session does not stay open.
func TestAFailedSessionIsOverForTheNextRunner(t *testing.T) {
	r := talkative(t, says("no", "still no"))
	spec := r.prompt(wantsItems)
	spec.Session = true
	r.dies(spec, func(ev task.Event) bool { return ev.Kind == task.KindTurn })
	if res := r.heir(spec.Run, func(*steps.Steps) {}); res.State != task.StateFailed || res.Code != 7 || res.Turn.Category != task.TurnInvalid {
		t.Errorf("result %+v, turn %+v", res, res.Turn)
	}
}

// The agent has said how its run ends, and the runner dies before the turn does.
func TestTheAgentsVerdictOutlivesTheRunner(t *testing.T) {
	var reporter steps.Reporter
	services := func(s *steps.Steps) {
		s.Services = func(_ context.Context, _ task.Spec, rep steps.Reporter) (steps.Services, error) {
			reporter = rep
			return steps.Services{}, nil
		}
	}
	r := talkative(t, func(int, string) (string, wire.Outcome) {
		if err := reporter.End(t.Context(), task.StateFailed, "as far as I came"); err != nil {
			t.Error(err)
		}
		return "bye", wire.Outcome{}
	})
	r.runner = r.newRunnerWith("me", services)
	spec := r.prompt("")
	spec.Session = true // it would stay
	r.dies(spec, func(ev task.Event) bool { return ev.Kind == task.KindAgent })
	if res := r.heir(spec.Run, services); res.State != task.StateFailed || res.Error != "as far as I came" || res.Turn.Text != "bye" {
		t.Errorf("result %+v, turn %+v", res, res.Turn)
	}
}

// A question of the host's own dies with it, which those who watch are told.
func TestAQuestionDiesWithItsRunner(t *testing.T) {
	var reporter steps.Reporter
	services := func(s *steps.Steps) {
		s.Services = func(_ context.Context, _ task.Spec, rep steps.Reporter) (steps.Services, error) {
			reporter = rep
			return steps.Services{}, nil
		}
	}
	asked := make(chan error, 1)
	ask := func(ctx context.Context) {
		_, err := reporter.Ask(ctx, task.Permission{RequestID: "q1", Options: []task.PermissionOption{{ID: "no"}}, Default: "no"})
		asked <- err
	}
	turn := make(chan struct{})
	r := talkative(t, func(int, string) (string, wire.Outcome) { <-turn; return "bye", wire.Outcome{} })
	r.runner = r.newRunnerWith("me", services)
	spec := r.prompt("")
	spec.Mode = task.ModeInteractive
	asking, stop := context.WithCancel(t.Context())
	began := false
	r.dies(spec, func(ev task.Event) bool {
		if ev.Kind == task.KindStep && !began && reporter != nil {
			began = true
			go ask(asking)
		}
		return ev.Kind == task.KindPermission
	})
	close(turn)
	r.heir(spec.Run, services)
	stop()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := count(r.stored(spec.Run), func(ev task.Event) bool { return ev.Method == wire.EventPermitted }); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func count(events []task.Event, f func(task.Event) bool) (n int) {
	for _, ev := range events {
		if f(ev) {
			n++
		}
	}
	return n
}

// late is an agent whose session takes a while to be there.
type late struct {
	*scripted
	begin <-chan struct{}
}

func (l late) Start(ctx context.Context, _ wire.Start) error {
	select {
	case <-l.begin:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// What is said while the agent starts has its turn after the prompt, and its end is the
// run's end.
func TestWhatIsSaidWhileTheAgentStarts(t *testing.T) {
	r := newRig(t)
	begin := make(chan struct{})
	var heard []string
	reply := func(_ int, text string) (string, wire.Outcome) {
		heard = append(heard, text)
		return "ok", wire.Outcome{}
	}
	r.provider = memory.New(map[string]agentserver.NewDriver{"claude": func(h *agentserver.Host) agentserver.Driver {
		return late{&scripted{host: h, reply: reply, stop: make(chan struct{}, 1)}, begin}
	}})
	spec := r.prompt("")
	on := func(ev task.Event) {
		if ev.Kind == task.KindStep && strings.Contains(string(ev.Params), `"step":"agent","status":"in_progress"`) {
			go func() {
				if _, err := r.store.AddInput(t.Context(), spec.Run, task.Input{ID: "m", Kind: task.InputMessage, Text: "and that"}); err != nil {
					t.Error(err)
				}
				time.AfterFunc(600*time.Millisecond, func() { close(begin) }) // the journal has been looked at by then
			}()
		}
	}
	res, err := r.runner.Run(t.Context(), spec, nil, nil, &recorder{on: on})
	if err != nil || res.State != task.StateCompleted || res.Turn.Number != 2 || !slices.Equal(heard, []string{"do it", "and that"}) {
		t.Errorf("heard %q, result %+v, turn %+v, %v", heard, res, res.Turn, err)
	}
}

// A cancelled session is over at once: nobody waits for an agent that has nothing to do.
// What had been said to it and not heard is told.
func TestACancelledSessionIsOverAtOnce(t *testing.T) {
	r := talkative(t, says("hello"))
	spec := r.prompt("")
	spec.Session = true
	var cancelled time.Time
	res, err := r.runner.Run(t.Context(), spec, nil, nil, &recorder{on: func(ev task.Event) {
		if ev.Kind == task.KindTurn && cancelled.IsZero() {
			cancelled = time.Now()
			for _, in := range []task.Input{{ID: "c", Kind: task.InputCancel}, {ID: "late", Kind: task.InputMessage, Text: "one more"}} {
				if _, err := r.store.AddInput(t.Context(), spec.Run, in); err != nil {
					t.Error(err)
				}
			}
		}
	}})
	if took := time.Since(cancelled); err != nil || res.State != task.StateCancelled || took > 8*time.Second {
		t.Errorf("took %s, result %+v, %v", took, res, err)
	}
	told := count(r.stored(spec.Run), func(ev task.Event) bool {
		return ev.Kind == task.KindNotice &&
			string(ev.Params) == `{"level":"warn","message":"input message was not taken: the run is over","messageId":"late"}`
	})
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// What was published is in the Result, each branch and pull request as it was last, also
// where it was published under an earlier runner.
func TestWhatWasPublishedOutlivesTheRunner(t *testing.T) {
	var reporter steps.Reporter
	services := func(s *steps.Steps) {
		s.Services = func(_ context.Context, _ task.Spec, rep steps.Reporter) (steps.Services, error) {
			reporter = rep
			return steps.Services{}, nil
		}
	}
	first := task.Published{Org: "acme", Name: "app", Branch: "fix", SHA: "1", URL: "https://github.com/acme/app/commit/1"}
	last, pull := first, task.Published{Org: "acme", Name: "app", Branch: "fix", Pull: 7, URL: "https://github.com/acme/app/pull/7"}
	last.SHA, last.URL = "2", "https://github.com/acme/app/commit/2"
	r := talkative(t, func(n int, _ string) (string, wire.Outcome) {
		if n == 0 {
			for _, p := range []task.Published{first, pull, last} {
				reporter.Tell(task.KindPublished, p)
			}
		}
		return "bye", wire.Outcome{}
	})
	r.runner = r.newRunnerWith("me", services)
	spec := r.prompt("")
	r.dies(spec, func(ev task.Event) bool { return ev.Kind == task.KindAgent })
	res := r.heir(spec.Run, services)
	if want := []task.Published{last, pull}; !slices.Equal(res.Published, want) {
		t.Errorf("published %+v", res.Published)
	}
}
