package repo

import (
	"context"
	"errors"
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

func (f *fixture) names() string {
	f.t.Helper()
	return gitAt(f.t, f.cache.BareDir(f.run, 0), "diff-tree", "-r", "--name-status", "--no-renames", "refs/insights/base", RefPrefix+string(f.run))
}

func TestNothingChangedIsNoCommit(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	writeAt(t, b.dir, "ignored.log", "x\n")
	res := f.capture(b)
	if res.Commit != "" || res.Ref != "" || res.Files != 0 || res.Base != b.p.Base {
		t.Fatalf("result %+v", res)
	}
	if got := f.git(f.top, "for-each-ref", "--format=%(refname)"); got != "refs/heads/trunk" {
		t.Fatalf("refs:\n%s", got)
	}
	err := f.cache.Diff(t.Context(), f.run, 0, DiffOptions{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "changed nothing") {
		t.Fatal(err)
	}
}

func TestEveryKindOfChangeComesOut(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	writeAt(t, b.dir, "untracked", "u\n")
	writeAt(t, b.dir, "bin", "\x00\xff\n")
	writeAt(t, b.dir, "odd \"name\n\ttab", "x\n")
	writeAt(t, b.dir, "staged", "s\n")
	gitAt(t, b.dir, "add", "staged")
	gitAt(t, b.dir, "mv", "dir", "moved")
	for _, step := range []error{
		os.Chmod(filepath.Join(b.dir, "a.txt"), 0o755),
		os.Remove(filepath.Join(b.dir, "link")),
		os.Symlink("/etc/passwd", filepath.Join(b.dir, "link")),
		os.Remove(filepath.Join(b.dir, ".gitignore")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	res := f.capture(b)
	want := "D\t.gitignore\nM\ta.txt\nA\tbin\nD\tdir/b.txt\nD\tdir/c.sh\nM\tlink\nA\tmoved/b.txt\nA\tmoved/c.sh\n" +
		"A\t\"odd \\\"name\\n\\ttab\"\nA\tstaged\nA\tuntracked"
	if got := f.names(); got != want {
		t.Fatalf("changes:\n%s\nwant:\n%s", got, want)
	}
	if res.Files != 11 {
		t.Fatalf("result %+v", res)
	}
	patch := f.diff(DiffOptions{})
	for _, part := range []string{"GIT binary patch", "old mode 100644\nnew mode 100755", "+/etc/passwd", "deleted file mode"} {
		if !strings.Contains(patch, part) {
			t.Fatalf("the patch lacks %q:\n%s", part, patch)
		}
	}
	if coloured := f.diff(DiffOptions{Color: true}); !strings.Contains(coloured, "\x1b[") || !strings.Contains(coloured, "rename from dir/b.txt") {
		t.Fatalf("coloured:\n%q", coloured)
	}
	// The patch gives the same tree when plain git applies it.
	f.git(f.top, "checkout", "-q", "-b", "check")
	cmd := filepath.Join(f.state, "patch")
	if err := os.WriteFile(cmd, []byte(patch), 0o600); err != nil {
		t.Fatal(err)
	}
	f.git(f.top, "apply", "--index", cmd)
	if got, want := f.git(f.top, "write-tree"), f.git(f.top, "rev-parse", res.Commit+"^{tree}"); got != want {
		t.Fatalf("the patch gives tree %s, want %s", got, want)
	}
}

func TestCommitsOfTheAgentAreKept(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	gitAt(t, b.dir, "checkout", "-q", "-b", "fix")
	writeAt(t, b.dir, "a.txt", "fixed\n")
	gitAt(t, b.dir, "commit", "-q", "-a", "-m", "fix it")
	agent := gitAt(t, b.dir, "rev-parse", "HEAD")
	writeAt(t, b.dir, "later", "not committed\n")
	res := f.capture(b)
	if got := f.git(f.top, "log", "--format=%an %s", res.Base+".."+res.Ref); got != "Insights agent insightscli run "+string(f.run)+"\nU fix it" {
		t.Fatalf("history:\n%s", got)
	}
	if got := f.git(f.top, "rev-parse", res.Ref+"^"); got != agent {
		t.Fatalf("parent %s, want %s", got, agent)
	}
	if got := f.names(); got != "M\ta.txt\nA\tlater" {
		t.Fatal(got)
	}
}

func TestHistoryThatDoesNotDescendFromTheBaseIsLeftOut(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	gitAt(t, b.dir, "checkout", "-q", "--orphan", "fresh")
	gitAt(t, b.dir, "commit", "-q", "-m", "all anew")
	writeAt(t, b.dir, "new", "n\n")
	res := f.capture(b)
	if got := f.git(f.top, "rev-parse", res.Ref+"^"); got != res.Base {
		t.Fatalf("parent %s, want %s", got, res.Base)
	}
}

func TestMergesAndGarbageCollectionInTheSandbox(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "branch", "other")
	b := f.open(task.Repo{})
	gitAt(t, b.dir, "checkout", "-q", "-b", "x")
	writeAt(t, b.dir, "x", "x\n")
	gitAt(t, b.dir, "add", "-A")
	gitAt(t, b.dir, "commit", "-q", "-m", "x")
	gitAt(t, b.dir, "checkout", "-q", "trunk")
	writeAt(t, b.dir, "y", "y\n")
	gitAt(t, b.dir, "add", "-A")
	gitAt(t, b.dir, "commit", "-q", "-m", "y")
	gitAt(t, b.dir, "merge", "-q", "--no-edit", "x")
	gitAt(t, b.dir, "gc", "-q", "--prune=now", "--aggressive")
	gitAt(t, b.dir, "fsck")
	res := f.capture(b)
	if got := f.git(f.top, "rev-list", "--count", res.Base+".."+res.Ref); got != "4" {
		t.Fatalf("%s commits", got)
	}
}

// E4: however the agent left the repository, its files come out.
func TestBrokenRepositoryInTheSandbox(t *testing.T) {
	for name, breakIt := range map[string]func(t *testing.T, dir string) error{
		"removed":  func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, ".git")) },
		"no index": func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, ".git/index")) },
		"bad index": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git/index"), []byte("x"), 0o600)
		},
		"bad head": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git/HEAD"), []byte("x"), 0o600)
		},
		"bad config": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git/config"), []byte("[x"), 0o600)
		},
		"no objects": func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, ".git/objects")) },
		"started anew": func(t *testing.T, dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				return err
			}
			gitAt(t, dir, "init", "-q")
			gitAt(t, dir, "add", "-A")
			gitAt(t, dir, "commit", "-q", "-m", "anew")
			return nil
		},
		"locked": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git/index.lock"), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			b := f.open(task.Repo{})
			writeAt(t, b.dir, "new", "n\n")
			if err := breakIt(t, b.dir); err != nil {
				t.Fatal(err)
			}
			f.capture(b)
			if got := f.names(); got != "A\tnew" {
				t.Fatalf("changes:\n%s", got)
			}
		})
	}
}

func TestTreeThatIsGoneIsAnError(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := f.cache.Capture(t.Context(), b, b.p); err == nil {
		t.Fatal("no error")
	}
}

// liar answers one git verb with something of its own.
type liar struct {
	*box
	verb string
	say  func(ctx context.Context, out io.Writer) (int, error)
}

// Exec implements Execer.
func (l liar) Exec(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (int, error) {
	for _, a := range c.Argv {
		if a == l.verb {
			return l.say(ctx, out)
		}
	}
	return l.box.Exec(ctx, c, in, out, says)
}

func TestHostileAnswersAreRefused(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	writeAt(t, b.dir, "new", "n\n")
	say := func(s string) func(context.Context, io.Writer) (int, error) {
		return func(_ context.Context, out io.Writer) (int, error) {
			_, err := io.WriteString(out, s)
			return 0, err
		}
	}
	for name, l := range map[string]liar{
		"tree is an option":  {verb: "write-tree", say: say("--output=/tmp/x\n")},
		"tree is long":       {verb: "write-tree", say: say(strings.Repeat("a", 1<<20))},
		"commit is unknown":  {verb: "commit-tree", say: say(strings.Repeat("ab", 20) + "\n")},
		"commit is the base": {verb: "commit-tree", say: say(b.p.Base + "x\n")},
		"pack is garbage":    {verb: "pack-objects", say: say("PACK\x00\x00\x00\x02\xff\xff\xff\xffgarbage")},
		"pack is empty":      {verb: "pack-objects", say: say("")},
		"pack is endless": {verb: "pack-objects", say: func(_ context.Context, out io.Writer) (int, error) {
			if _, err := io.WriteString(out, "PACK\x00\x00\x00\x02\x7f\xff\xff\xff"); err != nil {
				return 0, err
			}
			for {
				if _, err := out.Write(make([]byte, 1<<16)); err != nil {
					return 0, err
				}
			}
		}},
		"nothing runs": {verb: "rev-parse", say: func(context.Context, io.Writer) (int, error) { return -1, errors.New("link is gone") }},
	} {
		l.box = b
		_, err := f.cache.Capture(t.Context(), l, b.p)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 1000 {
			t.Errorf("%s: %q", name, err)
		}
	}
	if got := f.git(f.top, "for-each-ref", "--format=%(refname)"); got != "refs/heads/trunk" {
		t.Fatalf("refs:\n%s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(f.cache.BareDir(f.run, 0), "objects/pack/*")); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
	// And afterwards the truth is still taken.
	f.capture(b)
}

func TestSilentSandboxEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	writeAt(t, b.dir, "new", "n\n")
	ctx, cancel := context.WithCancel(t.Context())
	l := liar{box: b, verb: "pack-objects", say: func(ctx context.Context, _ io.Writer) (int, error) {
		cancel()
		<-ctx.Done()
		return -1, ctx.Err()
	}}
	if _, err := f.cache.Capture(ctx, l, b.p); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
}

func TestPackOverTheBoundIsRefused(t *testing.T) {
	f := newFixture(t)
	f.cache = New(Options{Dir: f.state, Environ: testEnviron(t), MaxPack: 10_000})
	b := f.open(task.Repo{})
	noise := make([]byte, 200_000)
	_, _ = rand.New(rand.NewSource(1)).Read(noise) // never fails
	writeAt(t, b.dir, "big", string(noise))
	_, err := f.cache.Capture(t.Context(), b, b.p)
	if err == nil {
		t.Fatal("no error")
	}
}

// A tree with a path that would write outside is refused by the check of the pack.
func TestTreeWithForbiddenPathIsRefused(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	blob := gitAt(t, b.dir, "hash-object", "-w", "a.txt")
	raw := "100644 ..\x00" + unhex(blob)
	p := filepath.Join(f.state, "tree")
	if err := os.WriteFile(p, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := gitAt(t, b.dir, "hash-object", "--literally", "-w", "-t", "tree", p)
	l := liar{box: b, verb: "write-tree", say: func(_ context.Context, out io.Writer) (int, error) {
		_, err := io.WriteString(out, tree+"\n")
		return 0, err
	}}
	_, err := f.cache.Capture(t.Context(), l, b.p)
	if err == nil || !strings.Contains(err.Error(), "git index-pack") {
		t.Fatalf("error %v", err)
	}
}

func unhex(s string) string {
	var out []byte
	for i := 0; i+1 < len(s); i += 2 {
		hi, lo := strings.IndexByte("0123456789abcdef", s[i]), strings.IndexByte("0123456789abcdef", s[i+1])
		out = append(out, byte(hi<<4|lo))
	}
	return string(out)
}

func TestManyObjectsArriveAsOnePack(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	for i := range 2 * fewObjects {
		writeAt(t, b.dir, fmt.Sprintf("many/%d", i), fmt.Sprint(i))
	}
	res := f.capture(b)
	if res.Files != 2*fewObjects {
		t.Fatalf("result %+v", res)
	}
	if got := f.git(f.top, "ls-tree", "-r", "--name-only", res.Ref, "many/7"); got != "many/7" {
		t.Fatal(got)
	}
	packs, err := filepath.Glob(filepath.Join(f.top, ".git/objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs %v, %v", packs, err)
	}
}

// Nothing of the caller's environment that steers git reaches it.
func TestEnvironmentIsNarrow(t *testing.T) {
	f := newFixture(t)
	f.cache = New(Options{Dir: f.state, Environ: append(testEnviron(t), "GIT_DIR=/nowhere", "GIT_WORK_TREE=/nowhere",
		"GIT_INDEX_FILE=/nowhere", "GIT_OBJECT_DIRECTORY=/nowhere", "GIT_CONFIG_COUNT=x", "GIT_EXEC_PATH=/nowhere", "LD_PRELOAD=/nowhere")})
	f.roundTrip(task.Repo{})
	for _, kv := range f.cache.git.env {
		if strings.Contains(kv, "/nowhere") {
			t.Errorf("%s is handed on", kv)
		}
	}
}
