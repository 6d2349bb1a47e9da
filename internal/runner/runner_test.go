package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

func TestRunTellsItsStoryInOrder(t *testing.T) {
	r := newRig(t)
	screen := &recorder{}
	spec := r.spec("sh", "-c", "echo out; echo err >&2")
	res, err := r.runner.Run(t.Context(), spec, nil, nil, screen)
	if err != nil {
		t.Fatal(err)
	}
	if res.State != task.StateCompleted || res.Code != 0 || res.ExitCode == nil || *res.ExitCode != 0 {
		t.Fatalf("result %+v", res)
	}
	var steps []string
	for _, ev := range screen.events {
		if ev.Kind == task.KindStep {
			var s task.Step
			if err := json.Unmarshal(ev.Params, &s); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, s.Step+" "+s.Status)
		}
	}
	want := "context in_progress,context completed,token in_progress,token completed," +
		"sandbox in_progress,sandbox completed,agent in_progress,agent completed," +
		"follow in_progress,follow completed,cleanup in_progress,cleanup completed"
	if got := strings.Join(steps, ","); got != want {
		t.Errorf("steps\n%s\nwant\n%s", got, want)
	}
	if got := output(t, screen.events); !strings.Contains(got, "out\n") || !strings.Contains(got, "err\n") {
		t.Errorf("output %q", got)
	}
	stored := r.stored(spec.Run)
	if len(stored) != len(screen.events) {
		t.Errorf("%d events stored, %d shown", len(stored), len(screen.events))
	}
	r.nothingLeft(spec.Run)
	if len(r.tokens.revoked) != 1 {
		t.Errorf("revoked tokens: %v", r.tokens.revoked)
	}
}

func TestResultOfACommand(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		code   int
		check  func(task.Result) bool
	}{
		"fails":     {"exit 3", 7, func(r task.Result) bool { return *r.ExitCode == 3 && r.State == task.StateFailed }},
		"by signal": {"kill -9 $$", 7, func(r task.Result) bool { return r.Signal == "SIGKILL" }},
		"succeeds":  {"true", 0, func(r task.Result) bool { return r.State == task.StateCompleted && r.Error == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			res, err := r.runner.Run(t.Context(), r.spec("sh", "-c", tt.script), nil, nil, &recorder{})
			if err != nil {
				t.Fatal(err)
			}
			if res.Code != tt.code || !tt.check(res) {
				t.Errorf("result %+v", res)
			}
		})
	}
}

// cancelWhen returns a screen that calls f once, when the command first says
// something.
func onOutput(f func()) *recorder {
	var once sync.Once
	return &recorder{on: func(ev task.Event) {
		if ev.Kind == task.KindOutput {
			once.Do(f)
		}
	}}
}

func TestCancelByContextEndsInOrder(t *testing.T) {
	for name, kind := range map[string]errs.Kind{"interrupt": errs.Canceled, "terminate": errs.Terminated} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			spec := r.spec("sh", "-c", "echo ready; exec sleep 1000")
			res, err := r.runner.Run(ctx, spec, nil, nil, onOutput(func() { cancel(errs.New("test", kind, "", "asked to stop")) }))
			if err != nil {
				t.Fatal(err)
			}
			if res.State != task.StateCancelled || res.Code != kind.Code() {
				t.Errorf("result %+v", res)
			}
			ins, err := r.store.Inputs(t.Context(), spec.Run)
			if err != nil || len(ins) != 1 || ins[0].Kind != task.InputCancel {
				t.Errorf("the cancel was not journalled: %v (%v)", ins, err)
			}
			r.stored(spec.Run)
			r.nothingLeft(spec.Run)
		})
	}
}

func TestCancelByInboxEndsInOrder(t *testing.T) {
	r := newRig(t)
	inbox := make(chan task.Input, 1)
	spec := r.spec("sh", "-c", "echo ready; exec sleep 1000")
	res, err := r.runner.Run(t.Context(), spec, nil, inbox, onOutput(func() { inbox <- task.Input{Kind: task.InputCancel} }))
	if err != nil {
		t.Fatal(err)
	}
	if res.State != task.StateCancelled || res.Code != 130 {
		t.Errorf("result %+v", res)
	}
	r.nothingLeft(spec.Run)
}

// A command that ignores every polite signal must not survive the second request.
func TestForceDoesNotWaitForTheAgent(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	spec := r.spec("sh", "-c", `trap "" INT TERM; echo ready; while :; do sleep 1; done`)
	screen := onOutput(func() { cancel(); close(r.force) })
	start := time.Now()
	res, err := r.runner.Run(ctx, spec, nil, nil, screen)
	if err != nil {
		t.Fatal(err)
	}
	if res.State != task.StateCancelled {
		t.Errorf("result %+v", res)
	}
	if took := time.Since(start); took > 20*time.Second { // two seconds, or never
		t.Errorf("it took %s", took)
	}
	r.nothingLeft(spec.Run)
}

func TestSecretsReachTheCommandAndNothingElse(t *testing.T) {
	const canary = "canary-value-3141592653589793"
	r := newRig(t)
	spec := r.spec("sh", "-c", `
		printf 'it is '; printf "$CANARY" | head -c 9; sleep 0.1; printf "$CANARY" | tail -c +10; echo
		printf '%s\n' "$CANARY" | tr a-z A-Z
		echo "$INSIGHTS_PERSONAL_API_KEY"`)
	spec.Secrets = []string{"CANARY"}
	screen := &recorder{}
	if _, err := r.runner.Run(t.Context(), spec, map[string]secret.String{"CANARY": secret.New(canary)}, nil, screen); err != nil {
		t.Fatal(err)
	}
	got := output(t, screen.events)
	if want := "it is [hidden]\n" + strings.ToUpper(canary) + "\n[hidden]\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	for _, word := range []string{canary, accessToken} {
		grep(t, r.dir, word)
	}
}

// grep fails the test if any file below dir holds word.
func grep(t *testing.T, dir, word string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), word) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeepLeavesTheSandbox(t *testing.T) {
	r := newRig(t)
	spec := r.spec("true")
	spec.Keep = true
	res, err := r.runner.Run(t.Context(), spec, nil, nil, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	boxes, err := r.provider.List(t.Context(), map[string]string{sandbox.LabelRun: string(spec.Run)})
	if err != nil || len(boxes) != 1 || res.Sandbox != string(boxes[0].ID) {
		t.Fatalf("boxes %v (%v), result %+v", boxes, err, res)
	}
}

// goOn carries an abandoned run to its end under another runner.
func (r *rig) goOn(run task.ID) {
	r.t.Helper()
	if ok, err := r.store.Claim(r.t.Context(), run, "me", "other"); !ok || err != nil {
		r.t.Fatalf("claim: %v %v", ok, err)
	}
	res, err := r.newRunner("other").Execute(r.t.Context(), run, nil, &recorder{})
	if err != nil || res.State != task.StateCompleted {
		r.t.Fatalf("result %+v, %v", res, err)
	}
}

// A run goes on under another runner with every line once, wherever the first one
// let go of it: before, within and after a secret.
func TestAnotherRunnerGoesOn(t *testing.T) {
	const canary = "canary-value-2718281828459045"
	for at := 1; at <= 7; at += 2 {
		t.Run(fmt.Sprintf("after %d outputs", at), func(t *testing.T) {
			r := newRig(t)
			spec := r.spec("sh", "-c", `for i in 1 2 3 4; do echo "$i"; sleep 0.05
				printf "$CANARY" | head -c 12; sleep 0.05; printf "$CANARY" | tail -c +13; echo; done`)
			spec.Secrets = []string{"CANARY"}
			ctx, abandon := context.WithCancelCause(t.Context())
			n := 0
			first := &recorder{on: func(ev task.Event) {
				if ev.Kind == task.KindOutput {
					if n++; n == at {
						abandon(runner.ErrAbandoned)
					}
				}
			}}
			_, err := r.runner.Run(ctx, spec, map[string]secret.String{"CANARY": secret.New(canary)}, nil, first)
			// Pieces may come together, so that the command is over before the last of
			// these counts is reached: then the first runner's own story is looked at.
			if err != nil {
				r.goOn(spec.Run)
			}
			want := "1\n[hidden]\n2\n[hidden]\n3\n[hidden]\n4\n[hidden]\n"
			if got := output(t, r.stored(spec.Run)); got != want {
				t.Errorf("output %q, want %q", got, want)
			}
			r.nothingLeft(spec.Run)
		})
	}
}

// The runner that continues must see a cancel that the first one journalled.
func TestACancelSurvivesItsRunner(t *testing.T) {
	r := newRig(t)
	spec := r.spec("sh", "-c", "echo ready; exec sleep 1000")
	ctx, abandon := context.WithCancelCause(t.Context())
	if _, err := r.runner.Run(ctx, spec, nil, nil, onOutput(func() { abandon(runner.ErrAbandoned) })); err == nil {
		t.Fatal("it was not abandoned")
	}
	if _, err := r.store.AddInput(t.Context(), spec.Run, task.Input{ID: "c", Kind: task.InputCancel}); err != nil {
		t.Fatal(err)
	}
	res, err := r.newRunner("me").Execute(t.Context(), spec.Run, nil, &recorder{})
	if err != nil || res.State != task.StateCancelled {
		t.Fatalf("result %+v, %v", res, err)
	}
	r.nothingLeft(spec.Run)
}

// A sandbox that is gone when its run is taken over ends the run, cleaned up.
func TestARunWithoutItsSandboxIsFinished(t *testing.T) {
	r := newRig(t)
	spec := r.spec("sh", "-c", "echo ready; exec sleep 1000")
	ctx, abandon := context.WithCancelCause(t.Context())
	if _, err := r.runner.Run(ctx, spec, nil, nil, onOutput(func() { abandon(runner.ErrAbandoned) })); err == nil {
		t.Fatal("it was not abandoned")
	}
	box, err := r.provider.Open(t.Context(), sandbox.ID(spec.Run))
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := r.newRunner("me").Execute(t.Context(), spec.Run, nil, &recorder{})
	if err != nil || res.State != task.StateFailed || !strings.Contains(res.Error, "gone") {
		t.Fatalf("result %+v, %v", res, err)
	}
	r.stored(spec.Run)
	r.nothingLeft(spec.Run)
}

// The finished event is written before the terminal state: a crash in between must
// not run anything again.
func TestARunThatIsFinishedInItsLogIsOnlyRecorded(t *testing.T) {
	r := newRig(t)
	spec := r.spec("true")
	if err := r.runner.Submit(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := r.store.Run(t.Context(), spec.Run)
	if err != nil {
		t.Fatal(err)
	}
	log, err := r.store.OpenLog(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	end, err := json.Marshal(task.Result{Run: spec.Run, Task: spec.Task, State: task.StateFailed, Code: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(task.Event{Seq: 1, At: time.Now(), Kind: task.KindFinished, Params: end}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := r.runner.Execute(t.Context(), spec.Run, nil, &recorder{})
	if err != nil || res.Code != 7 {
		t.Fatalf("result %+v, %v", res, err)
	}
	if rec, err = r.store.Run(t.Context(), spec.Run); err != nil || rec.State != task.StateFailed {
		t.Errorf("record %+v, %v", rec, err)
	}
	r.stored(spec.Run)
}
