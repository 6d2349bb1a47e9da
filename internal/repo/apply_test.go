package repo

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// changed runs a repository through with changes of many kinds.
func (f *fixture) changed() task.RepoResult {
	f.t.Helper()
	f.write("long", strings.Repeat("line\n", 20)+"middle\n"+strings.Repeat("line\n", 20))
	f.git(f.top, "add", "-A")
	f.git(f.top, "commit", "-q", "-m", "long")
	b := f.open(task.Repo{})
	writeAt(f.t, b.dir, "long", strings.Repeat("line\n", 20)+"middle\n"+strings.Repeat("line\n", 20)+"agent\n")
	writeAt(f.t, b.dir, "new/bin", "\x00\x01")
	for _, step := range []error{
		os.Remove(filepath.Join(b.dir, "dir/b.txt")),
		os.Chmod(filepath.Join(b.dir, "a.txt"), 0o755),
		os.Remove(filepath.Join(b.dir, "link")),
		os.Symlink("long", filepath.Join(b.dir, "link")),
	} {
		if step != nil {
			f.t.Fatal(step)
		}
	}
	return f.capture(b)
}

func TestApplyMergesWithWhatChangedSince(t *testing.T) {
	f := newFixture(t)
	f.changed()
	f.write("long", "user\n"+strings.Repeat("line\n", 20)+"middle\n"+strings.Repeat("line\n", 20))
	f.write("mine", "mine\n")
	f.git(f.top, "add", "mine")
	index := readAt(t, f.top, ".git/index")
	got, err := f.cache.Apply(t.Context(), f.run, 0, filepath.Join(f.top, "dir"))
	if err != nil {
		t.Fatal(err)
	}
	want := Applied{Top: f.top, Files: []string{"a.txt", "dir/b.txt", "link", "long", "new/bin"}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("applied %+v", got)
	}
	if readAt(t, f.top, ".git/index") != index {
		t.Fatal("the index was written")
	}
	if got := readAt(t, f.top, "long"); !strings.HasPrefix(got, "user\n") || !strings.HasSuffix(got, "agent\n") {
		t.Fatalf("long is %q", got)
	}
	if got := f.git(f.top, "status", "--porcelain"); got != " M a.txt\n D dir/b.txt\n M link\n M long\nA  mine\n?? new/" {
		t.Fatalf("status:\n%s", got)
	}
	// Once more there is nothing to do.
	again, err := f.cache.Apply(t.Context(), f.run, 0, f.top)
	if err != nil || len(again.Files) != 0 {
		t.Fatalf("applied again: %+v, %v", again, err)
	}
}

func TestApplyRefusesConflictsAndTouchesNothing(t *testing.T) {
	for name, clash := range map[string]func(f *fixture) string{
		"both changed": func(f *fixture) string {
			f.write("long", strings.Repeat("line\n", 20)+"middle\n"+strings.Repeat("line\n", 20)+"user\n")
			return "long"
		},
		"deleted here": func(f *fixture) string {
			f.git(f.top, "rm", "-q", "long")
			return "long"
		},
		"changed here, deleted there": func(f *fixture) string {
			f.write("dir/b.txt", "mine\n")
			return "dir/b.txt"
		},
		"untracked here": func(f *fixture) string {
			f.write("new/bin", "mine")
			return "new/bin"
		},
		"ignored here": func(f *fixture) string {
			f.write(".git/info/exclude", "new\n")
			f.write("new/bin", "mine")
			return "new/bin"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.changed()
			file := clash(f)
			before := snapshot(t, f.top)
			_, err := f.cache.Apply(t.Context(), f.run, 0, f.top)
			if errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), file) || errs.HintOf(err) == "" {
				t.Fatalf("error %v (%s), hint %q", err, errs.KindOf(err), errs.HintOf(err))
			}
			sameSnapshot(t, before, snapshot(t, f.top))
		})
	}
}

func TestApplyToAnotherCloneAndBranch(t *testing.T) {
	f := newFixture(t)
	f.changed()
	clone := filepath.Join(filepath.Dir(f.top), "clone")
	f.git("", "clone", "-q", f.top, clone)
	writeAt(t, clone, "extra", "x\n")
	f.git(clone, "add", "-A")
	f.git(clone, "commit", "-q", "-m", "extra")
	if _, err := f.cache.Apply(t.Context(), f.run, 0, clone); err != nil {
		t.Fatal(err)
	}
	if got := f.git(clone, "status", "--porcelain"); !strings.Contains(got, " M long") {
		t.Fatalf("status:\n%s", got)
	}
	if got := f.git(f.top, "status", "--porcelain"); got != "" {
		t.Fatalf("status of the other:\n%s", got)
	}
}

func TestApplyDoesNotWriteThroughLinks(t *testing.T) {
	f := newFixture(t)
	outside := t.TempDir()
	b := f.open(task.Repo{})
	writeAt(t, b.dir, "sub/file", "x\n")
	f.capture(b)
	if err := os.Symlink(outside, filepath.Join(f.top, "sub")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.cache.Apply(t.Context(), f.run, 0, f.top); err == nil {
		t.Fatal("no error")
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Fatalf("written outside: %v", left)
	}
}

func TestApplyOfUnknownRun(t *testing.T) {
	f := newFixture(t)
	_, err := f.cache.Apply(t.Context(), task.NewID(), 0, f.top)
	if errs.KindOf(err) != errs.NotFound {
		t.Fatal(err)
	}
}

// What root applies in the tree of somebody else belongs to that somebody.
func TestApplyKeepsTheOwnerOfTheTree(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	f := newFixture(t)
	f.changed()
	if err := giveAway(f.top, 1001, 1001); err != nil {
		t.Fatal(err)
	}
	f.cache = New(Options{Dir: f.state, Environ: append(testEnviron(t), "SUDO_UID=1001")})
	if _, err := f.cache.Apply(t.Context(), f.run, 0, f.top); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "new/bin", "long", "link"} {
		fi, err := os.Lstat(filepath.Join(f.top, name))
		if err != nil {
			t.Fatal(err)
		}
		if own, _ := ownerOf(fi); own.uid != 1001 {
			t.Errorf("%s belongs to %d", name, own.uid)
		}
	}
}
