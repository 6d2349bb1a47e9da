package publish_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// everyTool publishes by one tool after the other.
func (w *world) everyTool() {
	w.t.Helper()
	w.start("fix")
	w.others("main", "news", "n\n")
	w.do("git_signed_merge", args{})
	w.sh("git reset -q --hard HEAD^; git update-ref refs/remotes/origin/fix " + w.tip("fix"))
	w.sh("git fetch -q " + w.hub.Dir + " +main:refs/remotes/origin/main; git rebase -q origin/main")
	w.do("git_signed_rewrite", args{})
	w.do("create_pull_request", args{"title": "Fix"})
}

// Whatever a sandbox plants in its repository runs in the sandbox alone: every tool, with
// a repository that is copied and one that is mounted.
func TestNothingIsExecutedOnTheHost(t *testing.T) {
	t.Parallel()
	for _, mount := range []bool{false, true} {
		w := newWorld(t, setup{repo: func(w *world) task.Repo {
			return task.Repo{Source: task.RepoLocal, Path: w.local(w.gh.URL + "/acme/app.git"), Mount: mount}
		}})
		// Here the sandbox's processes are this machine's too: the host's git is known by
		// its environment.
		marker := filepath.Join(t.TempDir(), "executed")
		evil := filepath.Join(t.TempDir(), "evil")
		w.must(os.WriteFile(evil, []byte("#!/bin/sh\n[ -z \"$GIT_CONFIG_NOSYSTEM\" ] || touch '"+marker+"'\n[ -t 0 ] || cat\n"), 0o755))
		hooks := filepath.Join(w.tree, ".git", "hooks")
		w.must(os.MkdirAll(hooks, 0o755))
		for _, hook := range []string{"pre-commit", "post-merge", "post-checkout", "post-index-change", "reference-transaction", "pre-push", "post-rewrite"} {
			w.must(os.Symlink(evil, filepath.Join(hooks, hook)))
		}
		w.write(w.tree, ".gitattributes", "* filter=evil diff=evil merge=evil\n")
		w.write(w.tree, ".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ../x\n\tupdate = checkout\n")
		w.write(w.tree, ".git/modules/x/config", fmt.Sprintf("[core]\n\tfsmonitor = %q\n", evil))
		config, err := os.OpenFile(filepath.Join(w.tree, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
		w.must(err)
		_, err = fmt.Fprintf(config, `[core]
	fsmonitor = %[1]q
	sshCommand = %[1]q
	askPass = %[1]q
	pager = %[1]q
	editor = true
	alternateRefsCommand = %[1]q
[diff]
	external = %[1]q
[diff "evil"]
	textconv = %[1]q
[filter "evil"]
	clean = %[1]q
	smudge = %[1]q
[credential]
	helper = %[1]q
[alias]
	evil = !%[1]s
[uploadpack]
	packObjectsHook = %[1]q
[gpg]
	program = %[1]q
[commit]
	gpgSign = true
[submodule]
	recurse = true
`, evil)
		w.must(err)
		w.must(config.Close())
		w.sh("git -c commit.gpgSign=false -c diff.external= switch -qc planted")
		old := w.exec.to
		w.exec.to = execer2(func(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (int, error) {
			if len(c.Argv) > 0 && c.Argv[0] == "sh" {
				c.Env = append(c.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=commit.gpgSign", "GIT_CONFIG_VALUE_0=false")
			}
			return old.Exec(ctx, c, in, out, says)
		})
		w.everyTool()
		if _, err := os.Lstat(marker); err == nil {
			t.Errorf("mounted %v: a program ran", mount)
		}
	}
}

type execer2 func(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (int, error)

func (e execer2) Exec(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (int, error) {
	return e(ctx, c, in, out, says)
}

// says has the sandbox answer a git command with something of its own.
func (w *world) says(at, answer string) {
	w.exec.bend = func(_ context.Context, c wire.Command, _ io.Reader, out, _ io.Writer) (int, bool, error) {
		if verb(c) != at {
			return 0, false, nil
		}
		_, err := io.WriteString(out, answer)
		return 0, true, err
	}
}

// A sandbox that lies about names of objects, or sends something else, publishes nothing.
func TestLies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{maxPack: 1 << 20})
	w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
	blob := w.sh("git rev-parse :a.txt")
	none := strings.Repeat("1", 40)
	for at, answers := range map[string][]string{
		"write-tree":   {none, blob, w.base, "--output=/tmp/x", "", "HEAD", strings.Repeat("x", 1<<20)},
		"pack-objects": {"", "garbage", "PACK\x00\x00\x00\x02\xff\xff\xff\xff", strings.Repeat("\x00", 2<<20)},
		"rev-parse":    {none + "\n", "--all\n", strings.Repeat("a/b\n", 5)},
		"symbolic-ref": {"refs/heads/--upload-pack=x", "refs/heads/../x", "refs/heads/a b", "refs/heads/main", strings.Repeat("x", 1<<16)},
		"cat-file":     {strings.Repeat(none+"\n", 1<<12)},
	} {
		for _, answer := range answers {
			w.says(at, answer)
			w.refused("git_signed_commit", args{"message": "fix"})
		}
	}
	w.exec.bend = nil
	w.do("git_signed_commit", args{"message": "fix"})
	w.inStep("fix")
}

// No branch is made whose name is taken for something else; one that is there already is
// written to.
func TestMisleadingNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
	for _, name := range []string{"origin/main", "heads/main", "refs/x", "tags/v1", "remotes/origin/main", "a\u009b31mb", "a\u202eb", "a\u200bb", "a\u00a0b"} {
		w.refused("git_signed_commit", args{"message": "fix", "branch": name}, "may take it for something else", "choose another name")
	}
	w.git(w.hub.Dir, "update-ref", "refs/heads/origin/work", w.base)
	w.do("git_signed_commit", args{"message": "fix", "branch": "origin/work"})
}

// Objects that git would not make, and small ones that stand for endless work, are
// refused.
func TestMalformedObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix")
	blob := w.sh("echo evil | git hash-object -w --stdin")
	raw := w.sh("printf '" + strings.Repeat("\\001", 20) + "'")
	for name, entry := range map[string]string{
		"a name of git's":     "40000 .git\\0" + raw,
		"a way out":           "100644 ../x\\0" + raw,
		"a slash":             "100644 a/b\\0" + raw,
		"nothing behind it":   "100644 a\\0" + raw,
		"a file that is none": "100644 a\\0",
	} {
		tree := w.sh("printf '" + entry + "' | git hash-object -t tree -w --literally --stdin")
		w.says("write-tree", tree)
		w.refused("git_signed_commit", args{"message": name})
	}
	bomb := w.sh(`tree=$(printf '100644 blob ` + blob + `\tf\n' | git mktree)
for i in 1 2 3 4 5 6 7 8; do tree=$(for j in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree $tree\td$j\n"; done | git mktree); done; echo $tree`)
	w.says("write-tree", bomb)
	w.refused("git_signed_commit", args{"message": "bomb"}, "more than 1000000 files")
}

// A sandbox that never ends is given up.
func TestASandboxThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.exec.bend = func(ctx context.Context, c wire.Command, _ io.Reader, _, _ io.Writer) (int, bool, error) {
		if verb(c) != "pack-objects" {
			return 0, false, nil
		}
		cancel(errKilled)
		<-ctx.Done()
		return -1, true, context.Cause(ctx)
	}
	if _, err := w.tools["git_signed_commit"](ctx, []byte(`{"message":"x"}`)); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
	w.exec.bend = nil
	w.do("git_signed_commit", args{"message": "fix"}) // the lock is free
}

// Trees of any kind arrive as they are, one after the other.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix")
	seed := rand.Int63()
	rnd := rand.New(rand.NewSource(seed))
	parent := w.base
	for round := range 8 {
		for range 1 + rnd.Intn(12) {
			w.change(rnd)
		}
		w.sh("git add -A")
		tree := w.sh("git write-tree")
		if tree == w.sh("git rev-parse HEAD^{tree}") {
			continue
		}
		w.change(rnd) // after it was staged
		w.do("git_signed_commit", args{"message": fmt.Sprintf("round %d of %d", round, seed)})
		w.published("fix", tree, parent)
		w.inStep("fix")
		parent = w.tip("fix")
	}
}

// change makes, changes or removes something in the checkout.
func (w *world) change(rnd *rand.Rand) {
	w.t.Helper()
	names := []string{"a.txt", "dir/b.txt", "dir/sub/c", "-x", "ü ñ", "odd\tname", "q\"uote", "new\nline", ".hidden", "run.sh", "link", "日本", "a b/c d"}
	path := filepath.Join(w.tree, names[rnd.Intn(len(names))])
	if rnd.Intn(4) == 0 {
		w.must(os.RemoveAll(path))
		return
	}
	_ = os.RemoveAll(path)
	for dir := filepath.Dir(path); dir != w.tree; dir = filepath.Dir(dir) {
		if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
			w.must(os.Remove(dir))
		}
	}
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	switch rnd.Intn(4) {
	case 0:
		w.must(os.Symlink("../"+strings.Repeat("x", rnd.Intn(20))+"y", path))
	case 1:
		w.must(os.WriteFile(path, bytes.Repeat([]byte{0, byte(rnd.Intn(256))}, rnd.Intn(5000)), 0o644))
	default:
		mode := os.FileMode(0o644)
		if rnd.Intn(2) == 0 {
			mode = 0o755
		}
		w.must(os.WriteFile(path, fmt.Appendf(nil, "%d\n", rnd.Int()), mode))
	}
}
