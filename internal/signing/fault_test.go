package signing

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

// operation is one way to move the branch work, and what it makes of it.
type operation struct {
	name    string
	commits int // that it makes
	do      func(*world) (Result, error)
}

// operations cover every kind of request: a few files and many, a new branch, a
// rewrite and a merge.
func operations() []operation {
	publish := func(change func(*world, *Request)) func(*world) (Result, error) {
		return func(w *world) (Result, error) {
			r := w.request(w.tree(files{"x/y": {"100755", "x"}, "z": {"120000", "x"}}))
			change(w, &r)
			return w.client.Publish(w.t.Context(), r)
		}
	}
	return []operation{
		{"a commit", 1, publish(func(*world, *Request) {})},
		{"many files", 1, publish(func(w *world, r *Request) {
			all := files{}
			for i := range manyBlobs + 5 {
				all[fmt.Sprint("f", i)] = file{"100644", fmt.Sprint(i)}
			}
			r.Tree = w.tree(all)
		})},
		{"a new branch", 1, publish(func(w *world, r *Request) {
			w.git(w.repo.Dir, "update-ref", "-d", "refs/heads/work")
			r.Expected = ""
		})},
		{"a rewrite", 2, func(w *world) (Result, error) {
			one := w.commit(w.tree(files{"one": {"100644", "1"}}), "one", w.base)
			two := w.commit(w.tree(files{"one": {"100644", "2"}}), "two", one)
			return w.client.Rewrite(w.t.Context(), Rewrite{
				Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Head: two, Onto: w.base, Expected: w.base,
			})
		}},
		{"a merge", 1, func(w *world) (Result, error) {
			all := start()
			all["theirs"] = file{"100644", "theirs"}
			theirs := w.commit(w.tree(all), "theirs", w.base)
			w.git(w.bare, "push", "-q", w.repo.Dir, theirs+":refs/heads/main")
			return w.client.Merge(w.t.Context(), Merge{
				Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Expected: w.base, From: theirs, Message: "Merge main",
			})
		}},
	}
}

// faults runs an operation once for every request it makes: prepare says what goes
// wrong with the one of number n, and check what must be true afterwards.
func faults(t *testing.T, prepare func(w *world, n int), check func(w *world, n int, op operation, got Result, err error)) {
	t.Helper()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			faultsOf(newWorld(t, fakegithub.Options{}, start()), op, prepare, check)
		})
	}
	for _, op := range personal() {
		t.Run("of a person, "+op.name, func(t *testing.T) {
			t.Parallel()
			faultsOf(personsWorld(t, start()), op, prepare, check)
		})
	}
}

func faultsOf(w *world, op operation, prepare func(w *world, n int), check func(w *world, n int, op operation, got Result, err error)) {
	w.t.Helper()
	total := 1
	for n := 0; n <= total; n++ {
		w.reset()
		w.gh.Before(func(string, int) *fakegithub.Fault { return nil })
		if n > 0 {
			prepare(w, n)
		}
		got, err := op.do(w)
		if n == 0 {
			if total = w.gh.Requests(); err != nil || total < 2 {
				w.t.Fatalf("%d requests: %v", total, err)
			}
			continue
		}
		if err != nil {
			w.hidden(err.Error(), errs.HintOf(err))
		}
		w.hidden(got.Warnings...)
		w.gh.Before(nil)
		check(w, n, op, got, err)
	}
}

// Race: whenever somebody else moves the branch, their commit is on it afterwards.
func TestTheBranchAdvancesBetweenAnyTwoRequests(t *testing.T) {
	t.Parallel()
	faults(t, func(w *world, n int) {
		w.gh.Before(func(_ string, i int) *fakegithub.Fault {
			if i == n {
				w.theirs = w.others("work")
			}
			return nil
		})
	}, func(w *world, n int, op operation, got Result, err error) {
		switch {
		case w.tip("work") != w.theirs:
			w.t.Errorf("request %d of %s: their commit is lost (%v)", n, op.name, err)
		case err == nil && w.git(w.repo.Dir, "rev-parse", w.theirs+"^") != got.SHA:
			w.t.Errorf("request %d of %s: success, and the branch was never there", n, op.name)
		case err != nil && !errors.Is(err, ErrMoved):
			w.t.Errorf("request %d of %s: %v", n, op.name, err)
		}
		w.clean()
	})
}

// old reports whether the branch is what it was before the operation.
func (w *world) old() bool { tip := w.tip("work"); return tip == w.base || tip == "" }

// whole reports whether the branch has all of an operation: every object is there, and
// it is not half of a chain.
func (w *world) whole(op operation) bool {
	w.git(w.repo.Dir, "rev-list", "--objects", "--quiet", "refs/heads/work")
	n := w.git(w.repo.Dir, "rev-list", "--count", "--first-parent", w.base+"..refs/heads/work")
	return n == fmt.Sprint(op.commits)
}

// A connection that is gone for good from any request on, before it or after it was
// done, leaves the branch old or new; doing it again ends in the same commit, once.
func TestInterruptedAtAnyRequest(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakegithub.Fault{"before": {Drop: true}, "after": {Lose: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults(t, func(w *world, n int) {
				w.gh.Before(func(_ string, i int) *fakegithub.Fault {
					switch {
					case i < n:
						return nil
					case i == n:
						return &fault
					}
					return &fakegithub.Fault{Drop: true}
				})
			}, func(w *world, n int, op operation, got Result, err error) {
				switch {
				case !w.old() && !w.whole(op):
					w.t.Errorf("request %d of %s: the branch is neither old nor new: %s", n, op.name, w.tip("work"))
				case err == nil && w.old():
					w.t.Errorf("request %d of %s: success, and nothing was done: %+v", n, op.name, got)
				case err != nil && errs.KindOf(err) != errs.Unavailable:
					w.t.Errorf("request %d of %s: %s %v", n, op.name, errs.KindOf(err), err)
				}
				if op.name == "a new branch" || op.name == "a rewrite" && !w.old() {
					return // the first cannot be prepared again, the second sees a moved branch
				}
				if again, err := op.do(w); err != nil || !w.whole(op) || again.SHA != w.tip("work") {
					w.t.Errorf("request %d of %s, again: %+v, %v", n, op.name, again, err)
				}
			})
		})
	}
}

// An answer that is lost once is asked for again, and nobody notices.
func TestOneLostAnswer(t *testing.T) {
	t.Parallel()
	faults(t, func(w *world, n int) {
		w.gh.Before(func(_ string, i int) *fakegithub.Fault {
			if i == n {
				return &fakegithub.Fault{Lose: true}
			}
			return nil
		})
	}, func(w *world, n int, op operation, got Result, err error) {
		if err != nil || got.SHA != w.tip("work") || !w.whole(op) {
			w.t.Errorf("request %d of %s: %+v, %v", n, op.name, got, err)
		}
	})
}

// A caller that gives up ends the work at once, and the branch is old or new.
func TestCancelledAtAnyRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	r := w.request(w.tree(files{"x": {"100644", "x"}}))
	reason := errors.New("the reason")
	for n := 1; n <= 4; n++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		w.gh.Before(func(_ string, i int) *fakegithub.Fault {
			if i == n {
				cancel(reason)
			}
			return nil
		})
		_, err := w.client.Publish(ctx, r)
		if !errors.Is(err, reason) && !errors.Is(err, context.Canceled) {
			t.Errorf("request %d: %v", n, err)
		}
		if w.tip("work") != w.base {
			t.Errorf("request %d: the branch moved", n)
		}
		cancel(nil)
	}
}
