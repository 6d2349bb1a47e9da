package signing

import (
	"errors"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

// rebased is a world in which work has an old commit, and ours has two that take its
// place, and one between that changes nothing.
func rebased(t *testing.T) (*world, Rewrite) {
	t.Helper()
	w := newWorld(t, fakegithub.Options{}, start())
	old := w.commit(w.tree(files{"old": {"100644", "x"}}), "old", w.base)
	w.git(w.bare, "push", "-q", w.repo.Dir, old+":refs/heads/work")
	one := start()
	one["one"] = file{"100755", "1"}
	first := w.commit(w.tree(one), "one\n\nbecause", w.base)
	none := w.commit(w.tree(one), "nothing", first)
	delete(one, "dir/a")
	one["one"], one["dir/c"] = file{"100755", "2"}, file{"120000", "../one"}
	last := w.commit(w.tree(one), "two\n\nTask-Id: 7", none)
	return w, Rewrite{
		Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Head: last, Onto: w.base, Expected: old, Self: "agent@example.com",
	}
}

func TestARewriteIsTheChainThatItWas(t *testing.T) {
	t.Parallel()
	w, r := rebased(t)
	got, err := w.client.Rewrite(t.Context(), r)
	if err != nil || len(got.Commits) != 2 || got.SHA != w.tip("work") || got.Commits[1].SHA != got.SHA {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", w.git(w.bare, "rev-parse", r.Head+"^{tree}"), got.Commits[0].SHA)
	have := w.git(w.repo.Dir, "log", "--reverse", "--format=%T %B", w.base+"..work")
	want := w.git(w.bare, "rev-parse", r.Head+"~2^{tree}") + " one\n\nbecause\n\nCo-authored-by: Ada <ada@example.com>\n" +
		w.git(w.bare, "rev-parse", r.Head+"^{tree}") + " two\n\nTask-Id: 7\nCo-authored-by: Ada <ada@example.com>"
	if strings.TrimSpace(have) != want {
		t.Errorf("%s\nwant\n%s", have, want)
	}
}

func TestTheAgentIsNoCoAuthor(t *testing.T) {
	t.Parallel()
	w, r := rebased(t)
	r.Self, r.Onto, r.BaseTip = "ADA@example.com", "", w.base // where it left main
	if _, err := w.client.Rewrite(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if have := w.git(w.repo.Dir, "log", "--format=%B", w.base+"..work"); strings.Contains(have, "Co-authored") {
		t.Error(have)
	}
}

func TestWhatIsNotRewritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*world, *Rewrite)
		is     error
		kind   errs.Kind
	}{
		"the default branch":    {func(_ *world, r *Rewrite) { r.Branch = "main" }, ErrDefaultBranch, errs.Conflict},
		"the base branch":       {func(_ *world, r *Rewrite) { r.Base = "work" }, ErrBaseBranch, errs.Conflict},
		"a branch that moved":   {func(w *world, _ *Rewrite) { w.others("work") }, ErrMoved, errs.Conflict},
		"a branch that is gone": {func(_ *world, r *Rewrite) { r.Branch = "gone" }, ErrNoBranch, errs.NotFound},
		"no lease":              {func(_ *world, r *Rewrite) { r.Expected = "" }, nil, errs.Usage},
		"nothing":               {func(w *world, r *Rewrite) { r.Head = w.base }, ErrNothing, errs.Conflict},
		"only what changes nothing": {func(w *world, r *Rewrite) {
			r.Head = w.commit(w.tree(start()), "empty", w.base)
		}, ErrNothing, errs.Conflict},
		"a merge in the range": {func(w *world, r *Rewrite) {
			r.Head = w.commit(w.tree(start()), "merge", r.Head, w.commit(w.tree(files{"z": {"100644", "z"}}), "z", w.base))
		}, ErrMergeInRange, errs.Conflict},
		"no place to begin": {func(w *world, r *Rewrite) {
			r.Onto, r.BaseTip = "", w.commit(w.tree(start()), "of nothing")
		}, nil, errs.Conflict},
		"another history": {func(w *world, r *Rewrite) {
			r.Onto = w.commit(w.tree(files{"z": {"100644", "z"}}), "z", w.base)
		}, nil, errs.Conflict},
	} {
		w, r := rebased(t)
		tt.change(w, &r)
		was := w.tip("work")
		got, err := w.client.Rewrite(t.Context(), r)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || errs.KindOf(err) != tt.kind || w.tip("work") != was {
			t.Errorf("%s: %+v, %s %v", name, got, errs.KindOf(err), err)
		}
	}
}

func TestAMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	mine, theirs := start(), start()
	mine["mine"], theirs["theirs"] = file{"100755", "m"}, file{"120000", "t"}
	delete(theirs, "dir/a")
	ours := w.commit(w.tree(mine), "ours", w.base)
	other := w.commit(w.tree(theirs), "theirs", w.base)
	w.git(w.bare, "push", "-q", w.repo.Dir, ours+":refs/heads/work", other+":refs/heads/main")
	m := Merge{Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Expected: ours, From: other, Message: "Merge main"}
	got, err := w.client.Merge(t.Context(), m)
	if err != nil || !got.Verified {
		t.Fatalf("%+v, %v", got, err)
	}
	delete(mine, "dir/a")
	mine["theirs"] = theirs["theirs"]
	w.published("work", w.tree(mine), ours, other)

	again, err := w.client.Merge(t.Context(), m)
	if err != nil || !again.Unchanged || again.SHA != got.SHA {
		t.Errorf("again: %+v, %v", again, err)
	}
	m.From = w.base
	if same, err := w.client.Merge(t.Context(), m); err != nil || !same.Unchanged {
		t.Errorf("what is in it: %+v, %v", same, err)
	}
}

func TestAMergeThatConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	mine, theirs := start(), start()
	mine["README.md"], theirs["README.md"] = file{"100644", "mine\n"}, file{"100644", "theirs\n"}
	ours := w.commit(w.tree(mine), "ours", w.base)
	other := w.commit(w.tree(theirs), "theirs", w.base)
	w.git(w.bare, "push", "-q", w.repo.Dir, ours+":refs/heads/work", other+":refs/heads/main")
	m := Merge{Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Expected: ours, From: other, Message: "Merge main"}
	_, err := w.client.Merge(t.Context(), m)
	if !errors.Is(err, ErrMergeConflict) || !strings.Contains(err.Error(), `"README.md"`) || w.tip("work") != ours {
		t.Errorf("%v", err)
	}
	mine["README.md"] = file{"100644", "both\n"}
	m.Tree = w.tree(mine) // somebody resolved it
	if _, err := w.client.Merge(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.published("work", m.Tree, ours, other)
}
