package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

func TestWallClockEndsTheRun(t *testing.T) {
	r := newRig(t)
	spec := r.spec("sleep", "1000")
	spec.Timeout = task.Duration(300 * time.Millisecond)
	res, err := r.runner.Run(t.Context(), spec, nil, nil, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	if res.State != task.StateFailed || !res.WallClockEnd || res.Code != 124 {
		t.Errorf("result %+v", res)
	}
	r.nothingLeft(spec.Run)
}

// Idle end is how a finished conversation ends: not an error.
func TestIdleEndIsNoError(t *testing.T) {
	r := newRig(t)
	spec := r.spec("sleep", "1000")
	spec.IdleTimeout = task.Duration(300 * time.Millisecond)
	seen := &recorder{}
	res, err := r.runner.Run(t.Context(), spec, nil, nil, seen)
	if err != nil {
		t.Fatal(err)
	}
	if res.State != task.StateCompleted || !res.IdleEnd || res.Code != 0 || res.Error != "" {
		t.Errorf("result %+v", res)
	}
	for _, ev := range seen.events {
		if strings.Contains(string(ev.Params), string(task.StepFailed)) {
			t.Errorf("an idle end is told as a failure: %s", ev.Params)
		}
	}
	r.nothingLeft(spec.Run)
}

// A run that ends without its agent's own end must not keep what the masks held
// back: it is the beginning of a secret, or it was none.
func TestHeldOutputIsNotLostWithoutAnEnd(t *testing.T) {
	const canary = "canary-value-1618033988749894"
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	spec := r.spec("sh", "-c", `trap "" INT TERM; printf "$CANARY" | head -c 12; sleep 0.1; echo ready >&2; while :; do sleep 1; done`)
	spec.Secrets = []string{"CANARY"}
	screen := onOutput(func() { cancel(); close(r.force) })
	res, err := r.runner.Run(ctx, spec, map[string]secret.String{"CANARY": secret.New(canary)}, nil, screen)
	if err != nil || res.State != task.StateCancelled {
		t.Fatalf("result %+v, %v", res, err)
	}
	if got := output(t, r.stored(spec.Run)); got != "ready\n"+canary[:12] {
		t.Errorf("output %q", got)
	}
}

// Bytes that are held back on one stream once kept everything on the other from
// being acknowledged, and the sandbox stopped the agent when its journal was full.
func TestAnOpenLineOnOneStreamDoesNotStopTheOther(t *testing.T) {
	const canary, size = "canary-value-1414213562373095", 80_000_000
	r := newRig(t)
	spec := r.spec("sh", "-c", fmt.Sprintf(`printf "$CANARY" | head -c 12 >&2; sleep 0.1; yes | head -c %d`, size))
	spec.Secrets = []string{"CANARY"}
	got := 0
	screen := &recorder{on: func(ev task.Event) {
		if o, err := ev.Output(); err == nil && ev.Kind == task.KindOutput {
			_, b, _ := o.Bytes()
			got += len(b)
		}
	}}
	res, err := r.runner.Run(t.Context(), spec, map[string]secret.String{"CANARY": secret.New(canary)}, nil, screen)
	if err != nil || res.State != task.StateCompleted || res.IdleEnd || got != size+12 {
		t.Fatalf("%d bytes, result %+v, %v", got, res, err)
	}
}

// What a sandbox said before it ended is told; then the run has failed.
func TestASandboxThatEndsFailsTheRun(t *testing.T) {
	r := newRig(t)
	spec := r.spec("sh", "-c", "echo ready; exec sleep 1000")
	var destroyed sync.WaitGroup
	screen := onOutput(func() {
		destroyed.Go(func() {
			box, err := r.provider.Open(t.Context(), sandbox.ID(spec.Run))
			if err == nil {
				err = box.Destroy(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	})
	res, err := r.runner.Run(t.Context(), spec, nil, nil, screen)
	destroyed.Wait()
	// The end of the command may still have come out.
	if err != nil || res.State != task.StateFailed || res.Signal == "" && !strings.Contains(res.Error, "the sandbox ended") {
		t.Fatalf("result %+v, %v", res, err)
	}
	if got := output(t, r.stored(spec.Run)); got != "ready\n" {
		t.Errorf("output %q", got)
	}
	r.nothingLeft(spec.Run)
}

// An inbox that its owner closed is one that nothing comes from any more.
func TestAClosedInboxSaysNothing(t *testing.T) {
	r := newRig(t)
	inbox := make(chan task.Input)
	close(inbox)
	spec := r.spec("true")
	if _, err := r.runner.Run(t.Context(), spec, nil, inbox, &recorder{}); err != nil {
		t.Fatal(err)
	}
	if ins, err := r.store.Inputs(t.Context(), spec.Run); err != nil || len(ins) != 0 {
		t.Errorf("inputs %v, %v", ins, err)
	}
}

// A runner may die anywhere: wherever it lets go, the next one carries the run to its
// end, and the command runs once.
func TestAnotherRunnerGoesOnFromEveryStep(t *testing.T) {
	for _, at := range []string{
		"context in_progress", "context completed", "token in_progress", "token completed",
		"sandbox in_progress", "sandbox completed", "agent in_progress", "agent completed", "follow in_progress",
	} {
		t.Run(at, func(t *testing.T) {
			r := newRig(t)
			spec := r.spec("echo", "hello")
			ctx, abandon := context.WithCancelCause(t.Context())
			first := &recorder{on: func(ev task.Event) {
				var s task.Step
				if ev.Kind == task.KindStep && json.Unmarshal(ev.Params, &s) == nil && s.Step+" "+s.Status == at {
					abandon(runner.ErrAbandoned)
				}
			}}
			if _, err := r.runner.Run(ctx, spec, nil, nil, first); err != nil {
				if ok, err := r.store.Claim(t.Context(), spec.Run, "me", "other"); !ok || err != nil {
					t.Fatalf("claim: %v %v", ok, err)
				}
				res, err := r.newRunner("other").Execute(t.Context(), spec.Run, nil, &recorder{})
				if err != nil || res.State != task.StateCompleted {
					t.Fatalf("result %+v, %v", res, err)
				}
			}
			if got := output(t, r.stored(spec.Run)); got != "hello\n" {
				t.Errorf("output %q", got)
			}
			r.nothingLeft(spec.Run)
		})
	}
}
