package repo

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

// snapshot is everything a user could see of their repository: names, modes, times
// and contents. What skip names is left out.
func snapshot(t *testing.T, top string, skip ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		for _, s := range skip {
			if rel == s || strings.HasPrefix(rel, s+"/") {
				return nil
			}
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprint(fi.Mode(), " ", fi.ModTime().UnixNano())
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(raw))
		}
		out[rel] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameSnapshot(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s changed from %q to %q", name, was, after[name])
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s was made", name)
		}
	}
}

// messUp makes every kind of uncommitted work.
func (f *fixture) messUp() {
	f.t.Helper()
	f.write("a.txt", "one\ntwo\nthree\nfour, not staged\n")
	f.write("staged", "staged\n")
	f.write("both", "as staged\n")
	f.git(f.top, "add", "staged", "both")
	f.write("both", "as staged\nand more\n")
	f.write("untracked/x", "x\n")
	f.write("ignored.log", "no\n")
	f.write(".git/info/exclude", "private\n")
	f.write("private", "no\n")
	f.write("bin", "\x00\x01\x02\n")
	for _, step := range []error{
		os.Remove(filepath.Join(f.top, "dir/b.txt")),
		os.Chmod(filepath.Join(f.top, "dir/c.sh"), 0o644),
		os.Remove(filepath.Join(f.top, "link")),
		os.Symlink("dir", filepath.Join(f.top, "link")),
	} {
		if step != nil {
			f.t.Fatal(step)
		}
	}
}

func TestUncommittedWorkComesAlong(t *testing.T) {
	f := newFixture(t)
	f.messUp()
	want := f.git(f.top, "status", "--porcelain")
	before := snapshot(t, f.top)
	b := f.open(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true})
	sameSnapshot(t, before, snapshot(t, f.top))

	if got := gitAt(t, b.dir, "status", "--porcelain"); got != want {
		t.Fatalf("status in the sandbox:\n%s\nin the user's tree:\n%s", got, want)
	}
	if got := readAt(t, b.dir, "both"); got != "as staged\nand more\n" {
		t.Fatalf("both is %q", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ignored.log")); err == nil {
		t.Fatal("an ignored file came along")
	}
	// Setup may be repeated.
	if err := f.cache.Setup(t.Context(), b, b.p); err != nil {
		t.Fatal(err)
	}
	if res := f.capture(b); res.Commit != "" {
		t.Fatalf("nothing was changed, and yet: %+v", res)
	}
	writeAt(t, b.dir, "untracked/x", "changed by the agent\n")
	res := f.capture(b)
	if res.Files != 1 || res.Base != b.p.Base {
		t.Fatalf("result %+v", res)
	}
	if got := f.git(f.top, "show", "--format=%P", "--name-only", res.Ref); got != b.p.Base+"\n\nuntracked/x" {
		t.Fatalf("the commit is\n%s", got)
	}
	// The changes go back onto the tree with the uncommitted work.
	if _, err := f.cache.Apply(t.Context(), f.run, 0, f.top); err != nil {
		t.Fatal(err)
	}
	if got := readAt(t, f.top, "untracked/x"); got != "changed by the agent\n" {
		t.Fatalf("untracked/x is %q", got)
	}
	if got := f.git(f.top, "status", "--porcelain"); got != want {
		t.Fatalf("status afterwards:\n%s\nbefore:\n%s", got, want)
	}
}

func TestUncommittedIsAnnounced(t *testing.T) {
	f := newFixture(t)
	if got := f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top}); len(got.Notices) != 0 {
		t.Fatalf("notices of a clean tree: %q", got.Notices)
	}
	f.messUp()
	got := f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top})
	if len(got.Notices) != 1 || !strings.Contains(got.Notices[0], "8 files") || !strings.Contains(got.Notices[0], "--uncommitted") {
		t.Fatalf("notices %q", got.Notices)
	}
	got = f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true})
	if len(got.Notices) != 0 {
		t.Fatalf("notices %q", got.Notices)
	}
	got = f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top, Mount: true})
	if len(got.Notices) != 1 || !strings.Contains(got.Notices[0], "read-write") {
		t.Fatalf("notices %q", got.Notices)
	}
}

func TestUncommittedOnCleanTreeIsNothing(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true})
	if b.p.Tree != "" || b.p.Base != b.p.Repo.Commit {
		t.Fatalf("prepared %+v", b.p)
	}
}

func TestFileBecameDirectoryAndConflict(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "checkout", "-q", "-b", "other")
	f.write("a.txt", "other\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "other")
	f.git(f.top, "checkout", "-q", "trunk")
	f.write("a.txt", "trunk\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "trunk")
	merge := gitFails(t, f.top, "merge", "other")
	if !strings.Contains(merge, "CONFLICT") {
		t.Fatal(merge)
	}
	if err := os.Remove(filepath.Join(f.top, "dir/b.txt")); err != nil {
		t.Fatal(err)
	}
	f.write("dir/b.txt/inner", "x\n")
	b := f.open(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true})
	if got := readAt(t, b.dir, "dir/b.txt/inner"); got != "x\n" {
		t.Fatal(got)
	}
	if got := readAt(t, b.dir, "a.txt"); got != readAt(t, f.top, "a.txt") {
		t.Fatal(got)
	}
}

func TestSplitIndexIsRead(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "update-index", "--split-index")
	f.write("a.txt", "changed\n")
	before := snapshot(t, f.top)
	b := f.open(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true})
	sameSnapshot(t, before, snapshot(t, f.top))
	if got := gitAt(t, b.dir, "status", "--porcelain"); got != " M a.txt" {
		t.Fatal(got)
	}
}

// A program that a repository's configuration names never runs on the host.
func TestNothingOfTheRepositoryRunsOnTheHost(t *testing.T) {
	f := newFixture(t)
	mark := filepath.Join(f.state, "ran")
	script := filepath.Join(filepath.Dir(f.top), "evil")
	writeAt(t, filepath.Dir(script), "evil", "#!/bin/sh\ntouch '"+mark+"'\ncat\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
	f.git(f.top, "add", "-A")
	f.git(f.top, "commit", "-q", "-m", "attributes")
	if err := os.MkdirAll(filepath.Join(f.top, ".git/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor-watchman"} {
		if err := os.Symlink(script, filepath.Join(f.top, ".git/hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{
		"core.fsmonitor": script, "filter.evil.clean": script, "filter.evil.smudge": script, "filter.evil.process": script,
		"diff.external": script, "diff.evil.textconv": script, "diff.evil.command": script, "merge.evil.driver": script,
		"core.sshCommand": script, "core.pager": script, "core.editor": script, "gpg.program": script, "commit.gpgSign": "true",
		"core.askPass": script, "credential.helper": script, "core.alternateRefsCommand": script, "alias.ls-files": "!" + script,
	} {
		f.git(f.top, "config", key, value)
	}
	writeAt(t, f.state, "x", "")
	f.write("untracked", "u\n")
	if err := os.Remove(mark); err == nil {
		t.Log("git itself ran it while the test was set up")
	}
	b := f.open(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true})
	writeAt(t, b.dir, "a.txt", "changed\n")
	f.capture(b)
	f.diff(DiffOptions{})
	f.diff(DiffOptions{Stat: true})
	if _, err := f.cache.Apply(t.Context(), f.run, 0, f.top); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("a program of the repository ran on the host")
	}
	if got := readAt(t, f.top, "a.txt"); got != "changed\n" {
		t.Fatal(got)
	}
}

func TestUserRepositoryIsOnlyRead(t *testing.T) {
	f := newFixture(t)
	f.messUp()
	f.git(f.top, "tag", "-m", "annotated", "v1")
	before := snapshot(t, f.top)
	b := f.open(task.Repo{Source: task.RepoLocal, Path: f.top})
	sameSnapshot(t, before, snapshot(t, f.top))
	writeAt(t, b.dir, "new", "new\n")
	res := f.capture(b)
	f.diff(DiffOptions{})
	refs := []string{".git/refs/insights", ".git/refs", ".git/objects"}
	sameSnapshot(t, without(before, refs), without(snapshot(t, f.top), refs))
	if got := f.git(f.top, "for-each-ref", "--format=%(refname)"); got != "refs/heads/trunk\n"+res.Ref+"\nrefs/tags/v1" {
		t.Fatalf("refs:\n%s", got)
	}
	var out bytes.Buffer
	if err := f.cache.Diff(t.Context(), f.run, 0, DiffOptions{Stat: true}, &out); err != nil || !strings.Contains(out.String(), "1 file changed") {
		t.Fatalf("stat %q, %v", out.String(), err)
	}
}

func without(m map[string]string, prefixes []string) map[string]string {
	out := map[string]string{}
	for name, v := range m {
		keep := true
		for _, p := range prefixes {
			keep = keep && name != p && !strings.HasPrefix(name, p+"/")
		}
		if keep {
			out[name] = v
		}
	}
	return out
}
