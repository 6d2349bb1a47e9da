package journal

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

func TestUsageAddsUp(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	run, other := newRun(t, s).Spec.Run, newRun(t, s).Spec.Run
	total, byModel, err := s.Usage(ctx, run)
	must(t, err)
	if total != (task.Tokens{}) || len(byModel) != 0 {
		t.Errorf("before any: %+v, %v", total, byModel)
	}
	a := task.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Thought: 1, Total: 10, Requests: 1, CostUSD: 0.1}
	b := task.Tokens{Input: 10, Output: 20, Total: 30, Requests: 1, Unpriced: 1}
	_, err = s.AddUsage(ctx, run, "a", a)
	must(t, err)
	_, err = s.AddUsage(ctx, other, "a", a)
	must(t, err)
	_, err = s.AddUsage(ctx, run, "b", b)
	must(t, err)
	got, err := s.AddUsage(ctx, run, "a", a)
	must(t, err)
	want := task.Tokens{Input: 12, Output: 24, CacheRead: 6, CacheWrite: 8, Thought: 2, Total: 50, Requests: 3, CostUSD: 0.2, Unpriced: 1}
	if got != want {
		t.Errorf("sum %+v, want %+v", got, want)
	}
	total, byModel, err = s.Usage(ctx, run)
	must(t, err)
	if total != want || len(byModel) != 2 || byModel["b"] != b || byModel["a"].Requests != 2 {
		t.Errorf("%+v, %+v", total, byModel)
	}
}

// Floating-point numbers would not: a tenth of a cent is none of them.
func TestCostsAddUpExactly(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	run := newRun(t, s).Spec.Run
	var total task.Tokens
	for range 10 {
		var err error
		total, err = s.AddUsage(ctx, run, "m", task.Tokens{CostUSD: 0.00000005 + 0.1})
		must(t, err)
	}
	if total.CostUSD != 1.0000005 {
		t.Errorf("%v", total.CostUSD)
	}
}

func TestUsageOfManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	stores := []*Store{openStore(t, dir), openStore(t, dir)}
	run := newRun(t, stores[0]).Spec.Run
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := stores[i%2].AddUsage(t.Context(), run, fmt.Sprint("m", i%3), task.Tokens{Input: 1, Total: 1, Requests: 1})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	total, _, err := stores[0].Usage(t.Context(), run)
	must(t, err)
	if total.Requests != 20 || total.Total != 20 {
		t.Errorf("%+v", total)
	}
}

func TestUsageAfterTheEndOfARun(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	rec := newRun(t, s)
	must(t, s.Finish(ctx, rec.Spec.Run, result(rec, task.StateCompleted)))
	_, err := s.AddUsage(ctx, rec.Spec.Run, "m", task.Tokens{Requests: 1})
	must(t, err)
	if _, err := s.AddUsage(ctx, task.NewID(), "m", task.Tokens{Requests: 1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a run that was never recorded: %v", err)
	}
}

func BenchmarkAddUsage(b *testing.B) {
	s := openStore(b, b.TempDir())
	run := newRun(b, s).Spec.Run
	for b.Loop() {
		if _, err := s.AddUsage(b.Context(), run, "m", task.Tokens{Input: 1, Requests: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUsage(b *testing.B) {
	s := openStore(b, b.TempDir())
	run := newRun(b, s).Spec.Run
	if _, err := s.AddUsage(b.Context(), run, "m", task.Tokens{Input: 1, Requests: 1}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := s.Usage(b.Context(), run); err != nil {
			b.Fatal(err)
		}
	}
}
