package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// fixture is a repository of the user's, a state directory, and a run on it.
type fixture struct {
	t     *testing.T
	top   string // the user's repository
	state string
	cache *Cache
	run   task.ID
}

// testEnviron is what tests give as the environment of the caller.
func testEnviron(t testing.TB) []string {
	t.Helper()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, top: filepath.Join(dir, "Project"), state: filepath.Join(dir, "state"), run: task.NewID()}
	f.cache = New(Options{Dir: f.state, Environ: testEnviron(t)})
	f.git("", "init", "-q", "-b", "trunk", f.top)
	f.write("a.txt", "one\ntwo\nthree\n")
	f.write("dir/b.txt", "b\n")
	f.write("dir/c.sh", "#!/bin/sh\n")
	f.write(".gitignore", "*.log\n")
	if err := os.Chmod(filepath.Join(f.top, "dir/c.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(f.top, "link")); err != nil {
		t.Fatal(err)
	}
	f.git(f.top, "add", "-A")
	f.git(f.top, "commit", "-q", "-m", "first")
	return f
}

// git runs plain git, as the user would.
func (f *fixture) git(dir string, args ...string) string {
	f.t.Helper()
	return gitAt(f.t, dir, args...)
}

func gitAt(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=U", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=U", "GIT_COMMITTER_EMAIL=u@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (f *fixture) write(name, content string) { writeAt(f.t, f.top, name, content) }

func writeAt(t testing.TB, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readAt(t testing.TB, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (f *fixture) resolve(r task.Repo) Resolved {
	f.t.Helper()
	if r.Source == "" {
		r.Source, r.Path = task.RepoLocal, f.top
	}
	out, err := f.cache.Resolve(f.t.Context(), r, ResolveOptions{WorkDir: f.top, Home: f.state})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *fixture) options() PrepareOptions {
	return PrepareOptions{Run: f.run, UID: os.Getuid(), GID: os.Getgid(), WorkDir: filepath.Join(f.state, "run", string(f.run), "work", "0")}
}

// box is a prepared repository that commands run in without a sandbox: paths of the
// sandbox stand for those of the host.
type box struct {
	p    Prepared
	dir  string            // where the tree lies on the host
	tmp  string            // stands for /tmp
	host map[string]string // sandbox path -> host path
}

// open prepares the repository by copy and stands in for the mounts.
func (f *fixture) open(r task.Repo) *box {
	f.t.Helper()
	p, err := f.cache.Prepare(f.t.Context(), f.resolve(r).Repo, f.options())
	if err != nil {
		f.t.Fatal(err)
	}
	b := newBox(f.t, p)
	if err := f.cache.Setup(f.t.Context(), b, p); err != nil {
		f.t.Fatal(err)
	}
	return b
}

func newBox(t testing.TB, p Prepared) *box {
	t.Helper()
	b := &box{p: p, host: map[string]string{}, tmp: t.TempDir()}
	t.Cleanup(func() {
		if left, err := os.ReadDir(b.tmp); err != nil || len(left) > 0 {
			t.Errorf("left in the sandbox's /tmp: %v, %v", left, err)
		}
	})
	for _, m := range p.Mounts {
		if m.Kind != sandbox.MountBind {
			t.Fatalf("mount %+v cannot be simulated", m)
		}
		if m.Target == p.Repo.Dir() {
			b.dir = m.Source
		}
		b.host[m.Target] = m.Source
	}
	raw := readAt(t, b.dir, ".git/objects/info/alternates")
	writeAt(t, b.dir, ".git/objects/info/alternates", b.toHost(raw))
	return b
}

func (b *box) toHost(s string) string {
	for _, from := range append([]string{b.p.Repo.Dir()}, b.p.Objects...) {
		s = strings.ReplaceAll(s, from, b.host[from])
	}
	if rest, ok := strings.CutPrefix(s, "/tmp/insights-"); ok {
		s = b.tmp + "/insights-" + rest
	}
	return strings.ReplaceAll(s, "=/tmp/insights-", "="+b.tmp+"/insights-")
}

// Exec implements Execer.
func (b *box) Exec(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (int, error) {
	argv := make([]string, len(c.Argv))
	for i, a := range c.Argv {
		argv[i] = b.toHost(a)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = c.Dir, in, says
	// In a sandbox the tree is the agent's and so is the process.
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, b.toHost(e))
	}
	cmd.Stdout = out
	var held bytes.Buffer
	if strings.Contains(strings.Join(argv, " "), "--absolute-git-dir") {
		cmd.Stdout = &held
	}
	err := cmd.Run()
	if held.Len() > 0 {
		_, _ = io.WriteString(out, strings.ReplaceAll(held.String(), b.dir, b.p.Repo.Dir()))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return cmd.ProcessState.ExitCode(), err
}

func (f *fixture) capture(b *box) task.RepoResult {
	f.t.Helper()
	res, err := f.cache.Capture(f.t.Context(), b, b.p)
	if err != nil {
		f.t.Fatal(err)
	}
	if res.Error != "" {
		f.t.Fatal(res.Error)
	}
	return res
}

func (f *fixture) diff(o DiffOptions) string {
	f.t.Helper()
	var out bytes.Buffer
	if err := f.cache.Diff(f.t.Context(), f.run, 0, o, &out); err != nil {
		f.t.Fatal(err)
	}
	return out.String()
}

func TestCleanRepositoryGoesInAndComesOut(t *testing.T) {
	f := newFixture(t)
	b := f.open(task.Repo{})
	if got := gitAt(t, b.dir, "status", "--porcelain=v2", "--branch"); !strings.Contains(got, "branch.head trunk") || strings.Contains(got, "\n1 ") {
		t.Fatalf("status in the sandbox:\n%s", got)
	}
	writeAt(t, b.dir, "a.txt", "one\n2\nthree\n")
	writeAt(t, b.dir, "new/file", "new\n")
	if err := os.Remove(filepath.Join(b.dir, "dir/b.txt")); err != nil {
		t.Fatal(err)
	}
	res := f.capture(b)
	if res.Commit == "" || res.Files != 3 || res.Insertions != 2 || res.Deletions != 2 {
		t.Fatalf("result %+v", res)
	}
	if got := f.git(f.top, "rev-parse", "refs/insights/"+string(f.run)); got != res.Commit {
		t.Fatalf("ref is %s, want %s", got, res.Commit)
	}
	if got := f.git(f.top, "status", "--porcelain"); got != "" {
		t.Fatalf("the user's tree changed: %s", got)
	}
	if _, err := f.cache.Apply(t.Context(), f.run, 0, f.top); err != nil {
		t.Fatal(err)
	}
	if got := f.git(f.top, "status", "--porcelain"); got != " M a.txt\n D dir/b.txt\n?? new/" {
		t.Fatalf("after apply:\n%s", got)
	}
}

// gitFails runs plain git that must end with a code, and returns its output.
func gitFails(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=U", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=U", "GIT_COMMITTER_EMAIL=u@example.com")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("git %s succeeded:\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}
