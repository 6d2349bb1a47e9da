package publish_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/publish"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakegithub"
)

// vault keeps the secrets of a run in memory.
type vault map[string]secret.String

func (v vault) Get(_ context.Context, _ task.ID, name string) (secret.String, error) {
	return v[name], nil
}

func (v vault) All(context.Context, task.ID) (map[string]secret.String, error) {
	return maps.Clone(v), nil
}

func (v vault) Put(_ context.Context, _ task.ID, name string, value secret.String) error {
	v[name] = value
	return nil
}

// world is a GitHub with one repository, a run that works in it in a sandbox, and the
// run's tools.
type world struct {
	t     *testing.T
	gh    *fakegithub.Server
	hub   *fakegithub.Repo
	base  string // the commit that the run began at
	dir   string // state directory
	spec  task.Spec
	cache *repo.Cache
	repos []repo.Prepared
	exec  *execer
	tools map[string]func(context.Context, json.RawMessage) (string, error)
	token string
	tree  string // where the checkout lies on this machine

	mu   sync.Mutex
	told []task.Published
}

// execer is the way into the sandbox, which a test may bend.
type execer struct {
	to   repo.Execer
	bend func(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (code int, done bool, err error)
}

func (e *execer) Exec(ctx context.Context, c wire.Command, in io.Reader, out, says io.Writer) (int, error) {
	if e.bend != nil {
		if code, done, err := e.bend(ctx, c, in, out, says); done {
			return code, err
		}
	}
	return e.to.Exec(ctx, c, in, out, says)
}

func everything() map[string]string {
	return map[string]string{"contents": "write", "pull_requests": "write", "workflows": "write"}
}

// setup changes a world before its run begins.
type setup struct {
	github   fakegithub.Options
	repo     func(w *world) task.Repo // nil is the repository on the server
	options  func(*publish.Options)
	noCreate bool // the run opens no pull requests
	maxPack  int64
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, gh: fakegithub.New(t, s.github), dir: filepath.Join(t.TempDir(), "state")}
	w.hub = w.gh.AddRepo("acme", "app")
	w.token = w.gh.Token("acme", everything(), "app")
	w.first()
	w.cache = repo.New(repo.Options{
		Dir: w.dir, Environ: w.environ(), MaxPack: s.maxPack,
		Access: repo.Access{GitHub: w.gh.URL, Token: secret.New(w.gh.UserToken()), GH: filepath.Join(w.dir, "none")},
	})
	r := task.Repo{Source: task.RepoRemote, Org: "acme", Name: "app", URL: w.gh.URL + "/acme/app.git"}
	if s.repo != nil {
		r = s.repo(w)
	}
	w.begin(r)
	o := publish.Options{
		Run: w.spec.Run, Task: w.spec.Task, WorkDir: w.spec.WorkDir(), CreatePR: !s.noCreate,
		Workspace:  func() ([]repo.Prepared, repo.Execer, error) { return w.repos, w.exec, nil },
		Repos:      func(context.Context) (*repo.Cache, error) { return w.cache, nil },
		Credential: func(context.Context, string, string, bool) (publish.Credential, error) { return w.credential(), nil },
		Tell:       func(p task.Published) { w.mu.Lock(); defer w.mu.Unlock(); w.told = append(w.told, p) },
		GitHub:     w.gh.URL, APIURL: w.gh.URL + "/api/v3", Environ: w.environ(),
	}
	if s.options != nil {
		s.options(&o)
	}
	w.renew(o)
	return w
}

// renew makes the tools anew, as a process that takes over does.
func (w *world) renew(o publish.Options) {
	w.tools = map[string]func(context.Context, json.RawMessage) (string, error){}
	for _, tool := range publish.New(o).Tools() {
		w.tools[tool.Name] = tool.Call
	}
}

func (w *world) credential() publish.Credential {
	return publish.Credential{Token: func(context.Context) (secret.String, error) { return secret.New(w.token), nil }}
}

func (w *world) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.t.TempDir()}
}

// first makes what GitHub has at the beginning: main, and a branch that others work on.
func (w *world) first() {
	w.t.Helper()
	dir := w.t.TempDir()
	w.git(dir, "init", "-q", "-b", "main")
	w.write(dir, "a.txt", "one\n")
	w.write(dir, "dir/b.txt", "b\n")
	w.write(dir, "run.sh", "#!/bin/sh\n")
	w.must(os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-qm", "first")
	w.base = w.git(dir, "rev-parse", "HEAD")
	w.git(dir, "push", "-q", w.hub.Dir, "HEAD:refs/heads/main", "HEAD:refs/heads/theirs")
}

// begin prepares the repository and makes the sandbox.
func (w *world) begin(r task.Repo) {
	w.t.Helper()
	ctx := w.t.Context()
	found, err := w.cache.Resolve(ctx, r, repo.ResolveOptions{WorkDir: "/", Home: w.dir})
	w.must(err)
	w.spec = task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1, Agent: task.Agent{Name: "exec", Command: []string{"true"}},
		Provider: "memory", Network: task.NetworkLink, AgentUID: os.Getuid(), AgentGID: os.Getgid(), Repos: []task.Repo{found.Repo},
	}
	boxes := memory.New(map[string]agentserver.NewDriver{execdriver.Name: execdriver.New})
	secrets := vault{}
	s := &steps.Steps{
		Provider: func(context.Context, task.Spec) (sandbox.Provider, error) { return boxes, nil },
		Secrets:  secrets, Repos: w.cache, AgentServer: func(context.Context) (string, error) { return "", nil },
		Dir: w.dir, Owner: "owner", Domain: "domain",
	}
	secrets[steps.SecretLinkKey], err = steps.NewLinkKey(w.spec.Run)
	w.must(err)
	out, err := s.Workspace(ctx, steps.WorkspaceIn{Spec: w.spec})
	w.must(err)
	mounts := out.Mounts
	if r.Mount {
		mounts = mounts[:1] // this provider has none inside of others
	}
	_, box, err := s.Create(ctx, steps.ProvisionIn{Spec: w.spec, Name: "box", Mounts: mounts})
	w.must(err)
	w.t.Cleanup(func() { _ = box.Destroy(context.Background()) })
	client, err := s.Connect(ctx, w.spec.Run, box, nil)
	w.must(err)
	w.t.Cleanup(func() { _ = client.Close() })
	w.repos = out.Repos
	w.exec = &execer{to: steps.NewWorkspace(out.Repos, client).Exec}
	for _, m := range out.Mounts {
		if m.Target == w.repos[0].Repo.Dir() {
			w.tree = m.Source
		}
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(dir, name, content string) {
	w.t.Helper()
	path := filepath.Join(dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(content), 0o644))
}

// git runs the git of a person on this machine.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, says.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// sh is what the agent does in its checkout.
func (w *world) sh(script string) string {
	w.t.Helper()
	var out, says bytes.Buffer
	code, err := w.exec.to.Exec(w.t.Context(), wire.Command{
		Argv: []string{"sh", "-ec", script}, Dir: w.repos[0].Repo.Dir(),
		Env: []string{
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Agent", "GIT_AUTHOR_EMAIL=" + repo.AgentEmail, "GIT_COMMITTER_NAME=Agent",
			"GIT_COMMITTER_EMAIL=" + repo.AgentEmail, "GIT_EDITOR=true",
		},
	}, bytes.NewReader(nil), &out, &says)
	if err != nil || code != 0 {
		w.t.Fatalf("%s: code %d, %v\n%s%s", script, code, err, out.String(), says.String())
	}
	return strings.TrimSuffix(out.String(), "\n")
}

type args map[string]any

// call calls a tool.
func (w *world) call(name string, a args) (string, error) {
	w.t.Helper()
	raw, err := json.Marshal(a)
	w.must(err)
	text, err := w.tools[name](w.t.Context(), raw)
	w.hidden(text, fmt.Sprint(err))
	return text, err
}

// do is call for what must succeed.
func (w *world) do(name string, a args) string {
	w.t.Helper()
	text, err := w.call(name, a)
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return text
}

func (w *world) hidden(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if strings.Contains(text, w.token) {
			w.t.Errorf("the token is in %q", text)
		}
	}
}

// tip is what GitHub's branch points to, or "".
func (w *world) tip(branch string) string {
	w.t.Helper()
	return w.git(w.hub.Dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// others adds a commit of somebody else's to a branch on GitHub.
func (w *world) others(branch, name, content string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	w.git(dir, "clone", "-q", "-b", branch, w.hub.Dir, ".")
	w.write(dir, name, content)
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-qm", "somebody else's")
	w.git(dir, "push", "-q", "origin", branch)
	return w.git(dir, "rev-parse", "HEAD")
}

// published checks, by real git, that GitHub's branch has a tree, is signed, and comes
// after one parent.
func (w *world) published(branch, tree string, parents ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "fetched.git")
	w.git("", "init", "-q", "--bare", "--template=", dir)
	w.git(dir, "fetch", "-q", strings.Replace(w.gh.URL, "://", "://x:"+w.token+"@", 1)+"/acme/app.git", "+refs/heads/"+branch+":refs/heads/got")
	w.git(dir, "fsck", "--strict", "--no-dangling")
	if got := w.git(dir, "rev-parse", "got^{tree}"); got != tree {
		w.t.Errorf("%s has the tree %s, want %s", branch, got, tree)
	}
	text := w.git(dir, "cat-file", "commit", "got")
	if !strings.Contains(text, "gpgsig ") || !strings.Contains(text, "committer GitHub") {
		w.t.Errorf("not signed:\n%s", text)
	}
	if got := w.git(dir, "show", "-s", "--format=%P", "got"); got != strings.Join(parents, " ") {
		w.t.Errorf("the parents are %s, want %v", got, parents)
	}
	return text
}

// inStep checks that the checkout is where the branch is on GitHub, with nothing staged.
func (w *world) inStep(branch string) {
	w.t.Helper()
	tip := w.tip(branch)
	got := w.sh("git symbolic-ref HEAD; git rev-parse HEAD refs/remotes/origin/" + branch + "; git diff --cached --name-only")
	if want := "refs/heads/" + branch + "\n" + tip + "\n" + tip; got != want {
		w.t.Errorf("the checkout is at\n%s\nwant\n%s", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "repos", "*", "*desk*")); err != nil || len(left) > 0 {
		w.t.Errorf("left behind: %v, %v", left, err)
	}
}

// refused calls a tool that must fail, publish nothing and say how to go on.
func (w *world) refused(name string, a args, words ...string) {
	w.t.Helper()
	before := w.git(w.hub.Dir, "for-each-ref")
	text, err := w.call(name, a)
	if err == nil {
		w.t.Errorf("%s%v succeeded: %s", name, a, text)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("%s%v: %q does not say %q", name, a, err, word)
		}
	}
	if after := w.git(w.hub.Dir, "for-each-ref"); after != before {
		w.t.Errorf("%s%v: GitHub has\n%s\nand had\n%s", name, a, after, before)
	}
}

// verb is the git command of a command for the sandbox.
func verb(c wire.Command) string {
	for i := 0; i < len(c.Argv); i++ {
		switch a := c.Argv[i]; {
		case i == 0 && a != "git":
			return ""
		case i == 0:
		case a == "-C" || a == "-c":
			i++
		default:
			return a
		}
	}
	return ""
}

var errKilled = errors.New("killed")
