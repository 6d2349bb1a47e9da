package repo

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// three makes three commits of a repository and returns them.
func (f *fixture) three() []task.Repo {
	f.t.Helper()
	var out []task.Repo
	for _, content := range []string{"1", "2", "3"} {
		f.write("a.txt", content)
		f.git(f.top, "commit", "-q", "-a", "-m", content)
		out = append(out, f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top}).Repo)
	}
	return out
}

// prepare prepares for a run of its own and returns the key of the checkout.
func (f *fixture) prepare(r task.Repo, overlay bool) (task.ID, string) {
	f.t.Helper()
	before := map[string]bool{}
	for _, k := range f.cache.entries() {
		before[k] = true
	}
	o := f.options()
	o.Run, o.Overlay = task.NewID(), overlay
	o.WorkDir = filepath.Join(f.state, "run", string(o.Run))
	if _, err := f.cache.Prepare(f.t.Context(), r, o); err != nil {
		f.t.Fatal(err)
	}
	for _, k := range f.cache.entries() {
		if !before[k] {
			return o.Run, k
		}
	}
	return o.Run, ""
}

func TestSecondRunFindsTheCheckout(t *testing.T) {
	f := newFixture(t)
	r := f.resolve(task.Repo{}).Repo
	if _, key := f.prepare(r, false); key == "" {
		t.Fatal("no checkout was made")
	}
	if _, key := f.prepare(r, true); key != "" {
		t.Fatal("another checkout was made")
	}
	// Refs do not matter for it, and are those of now.
	f.git(f.top, "tag", "later")
	f.run = task.NewID()
	b := f.open(task.Repo{})
	if n := len(f.cache.entries()); n != 1 {
		t.Fatalf("%d checkouts", n)
	}
	if got := gitAt(t, b.dir, "tag"); got != "later" {
		t.Fatalf("tags %q", got)
	}
}

func TestUnusedCheckoutsAreEvictedOldestFirst(t *testing.T) {
	f := newFixture(t)
	repos := f.three()
	f.cache.maxCheckouts = 1
	held, first := f.prepare(repos[0], true)
	_, second := f.prepare(repos[1], false) // a copy holds nothing afterwards
	if n := len(f.cache.entries()); n != 2 {
		t.Fatalf("%d checkouts", n)
	}
	f.prepare(repos[2], false)
	have := map[string]bool{}
	for _, k := range f.cache.entries() {
		have[k] = true
	}
	if !have[first] || have[second] || len(have) != 2 {
		t.Fatalf("the used one is %v, the unused one %v, of %d", have[first], have[second], len(have))
	}
	// Any process may release what a run held.
	other := New(Options{Dir: f.state, MaxCheckouts: 1})
	if err := other.Release(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := other.Sweep(t.Context(), func(task.ID) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if n := len(f.cache.entries()); n != 0 {
		t.Fatalf("%d checkouts", n)
	}
}

func TestSweepReleasesRunsThatAreOver(t *testing.T) {
	f := newFixture(t)
	repos := f.three()
	over, _ := f.prepare(repos[0], true)
	f.prepare(repos[1], true)
	f.cache.maxCheckouts = 1
	if err := f.cache.Sweep(t.Context(), func(run task.ID) bool { return run != over }); err != nil {
		t.Fatal(err)
	}
	if n := len(f.cache.entries()); n != 1 {
		t.Fatalf("%d checkouts", n)
	}
}

func TestHalfMadeCheckoutIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	r := f.resolve(task.Repo{}).Repo
	_, key := f.prepare(r, true)
	dir := filepath.Join(f.state, "cache", "checkout", key)
	// Killed while it was made: it has its other name, and lacks files.
	if err := os.Rename(dir, dir+".tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir+".tmp", "tree", "a.txt")); err != nil {
		t.Fatal(err)
	}
	f.prepare(r, true)
	if got := readAt(t, dir, "tree/a.txt"); got != "one\ntwo\nthree\n" {
		t.Fatal(got)
	}
	if _, err := os.Lstat(dir + ".tmp"); err == nil {
		t.Fatal("the old one is still there")
	}
}

// A checkout that was made just before the machine went down may have files without
// their contents.
func TestCheckoutOfAnEarlierBootIsTrustedOnlyWhenSettled(t *testing.T) {
	testenv.Need(t, "a system that tells its boots apart", bootID() != "")
	f := newFixture(t)
	r := f.resolve(task.Repo{}).Repo
	_, key := f.prepare(r, true)
	dir := filepath.Join(f.state, "cache", "checkout", key)
	raw, err := json.Marshal(entryMeta{Commit: r.Commit, Boot: "another"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, metaName), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if usable(dir) {
		t.Fatal("it is trusted")
	}
	if err := os.WriteFile(filepath.Join(dir, durableName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !usable(dir) {
		t.Fatal("it is not trusted although it was settled")
	}
}

func TestLockIsGivenUpWithTheContext(t *testing.T) {
	f := newFixture(t)
	unlock, err := f.cache.lock(t.Context(), f.cache.checkoutsDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := f.cache.lock(ctx, f.cache.checkoutsDir(), "x"); err == nil {
		t.Fatal("two hold the lock")
	}
}

func TestRemoveForgetsARun(t *testing.T) {
	f := newFixture(t)
	_, res := f.roundTrip(task.Repo{})
	if err := f.cache.Remove(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(f.cache.BareDir(f.run, 0)); err == nil {
		t.Fatal("the changes are still there")
	}
	if got := f.git(f.top, "rev-parse", res.Ref); got != res.Commit {
		t.Fatal("the user's ref went with them")
	}
}

func TestSweepRemovesWhatKilledProcessesLeft(t *testing.T) {
	f := newFixture(t)
	_, key := f.prepare(f.resolve(task.Repo{}).Repo, false)
	other := filepath.Join(f.state, "cache", "checkout", key[1:]+"0.tmp")
	busy := filepath.Join(f.state, "cache", "checkout", key+".tmp")
	view := filepath.Join(f.state, "cache", "tmp", "view-1")
	for _, dir := range []string{other, busy, view} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(view, old, old); err != nil {
		t.Fatal(err)
	}
	unlock, err := f.cache.lock(t.Context(), f.cache.checkoutsDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := f.cache.Sweep(t.Context(), func(task.ID) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{other: false, busy: true, view: false} {
		if _, err := os.Lstat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v", dir, err == nil)
		}
	}
}
