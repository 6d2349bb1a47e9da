package cli

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakegithub"
)

func TestWhenChecksAreFollowed(t *testing.T) {
	follow := config.Config{Run: config.Run{FollowCI: true, FollowIdle: 900, FollowPoll: 60}}
	given := map[string]string{"INSIGHTSCLI_FOLLOW_CI": "true"}
	negative := follow
	negative.Run.FollowPoll = -1
	for name, tt := range map[string]struct {
		config   config.Config
		settings map[string]string
		createPR bool
		agent    string
		want     bool
		kind     errs.Kind
	}{
		"asked for":              {follow, given, true, task.AgentClaude, true, ""},
		"as a default":           {follow, nil, true, task.AgentCodex, true, ""},
		"a default without one":  {follow, nil, false, task.AgentClaude, false, ""},
		"without --create-pr":    {follow, given, false, task.AgentClaude, false, errs.Usage},
		"a command":              {follow, nil, true, task.AgentExec, false, ""},
		"not asked for":          {config.Config{}, nil, true, task.AgentClaude, false, ""},
		"a time before its time": {negative, given, true, task.AgentClaude, false, errs.Config},
	} {
		o := &runOptions{createPR: tt.createPR, settings: tt.settings}
		p := plan{config: tt.config, spec: task.Spec{Agent: task.Agent{Name: tt.agent}}, secrets: map[string]secret.String{}}
		err := o.freezeFollow(t.Context(), &p)
		if p.spec.FollowCI != tt.want || tt.kind == "" && err != nil || tt.kind != "" && errs.KindOf(err) != tt.kind {
			t.Errorf("%s: %+v, %v", name, p.spec, err)
		}
		if tt.want && (p.spec.FollowIdle.Std() != 15*time.Minute || p.spec.FollowPoll.Std() != time.Minute) {
			t.Errorf("%s: %+v", name, p.spec)
		}
	}
}

// following is a run whose pull request is followed, and GitHub.
type following struct {
	t        *testing.T
	fake     *fakegithub.Server
	repo     *fakegithub.Repo
	services *services
	spec     task.Spec
	said     []task.Input
	told     []task.Notice
	work     func() // what the agent does about a message
}

func (f *following) Idle(context.Context) (time.Time, bool) { return time.Time{}, true }
func (f *following) Pulls() []task.Published {
	return []task.Published{{Org: "org", Name: "repo", Pull: 1}}
}
func (f *following) Said(context.Context) ([]task.Input, error) { return slices.Clone(f.said), nil }
func (f *following) Tell(_ task.Kind, payload any)              { f.told = append(f.told, payload.(task.Notice)) }
func (f *following) Say(_ context.Context, in task.Input) error {
	f.said = append(f.said, in)
	f.work()
	return nil
}

// newFollowing has a pull request whose check fails, and a run with the given keys.
func newFollowing(t *testing.T, keys map[string]secret.String, path string) *following {
	t.Helper()
	f := &following{t: t, fake: fakegithub.New(t, fakegithub.Options{})}
	f.repo = f.fake.AddRepo("org", "Repo")
	f.git("work")
	f.fake.OpenPull(f.repo, fakegithub.Pull{Head: "work", Base: "main"})
	f.fake.SetCI(f.repo, "work", fakegithub.CI{Checks: []fakegithub.Check{{Name: "unit tests", Conclusion: "failure"}}})
	f.work = func() {
		f.git("work")
		f.fake.SetCI(f.repo, "work", fakegithub.CI{Checks: []fakegithub.Check{{Name: "unit tests", Conclusion: "success"}}})
	}
	dir := t.TempDir()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	key, err := seal.Open(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	store := journal.New(db.DB, dir)
	secrets := &runner.Secrets{Key: key, Store: store}
	f.services = &services{secrets: secrets, live: map[task.ID]*served{}, state: &state{
		store: store, repos: repo.New(repo.Options{Dir: dir, Environ: []string{"PATH=" + path}}),
	}}
	f.spec = task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1, Agent: task.Agent{Name: task.AgentClaude},
		FollowCI: true, FollowIdle: task.Duration(time.Millisecond), FollowPoll: task.Duration(time.Millisecond),
	}
	if err := store.Create(t.Context(), f.spec, nil); err != nil {
		t.Fatal(err)
	}
	keys[secretGitHub] = secret.New(f.fake.URL)
	for name, value := range keys {
		if err := secrets.Put(t.Context(), f.spec.Run, name, value); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// git puts another commit on a branch of GitHub's repository.
func (f *following) git(branch string) {
	f.t.Helper()
	script := `o=$(git commit-tree $(git mktree </dev/null) -m "$(git rev-parse -q --verify refs/heads/$1) more") && git update-ref refs/heads/$1 $o`
	cmd := exec.CommandContext(f.t.Context(), "sh", "-c", script, "sh", branch)
	cmd.Dir = f.repo.Dir
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
}

// app installs a GitHub App with some permissions, and returns its keys.
func (f *following) app(permissions map[string]string) {
	f.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.t.Fatal(err)
	}
	a := f.fake.AddApp("my-app", "org", key, permissions)
	f.fake.Install("my-app", "org", "Repo")
	for name, value := range map[string]string{
		secretAppKey: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		secretApp:    a.ClientID + " my-app",
	} {
		if err := f.services.secrets.Put(f.t.Context(), f.spec.Run, name, secret.New(value)); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *following) notices() string {
	var all []string
	for _, n := range f.told {
		all = append(all, n.Message)
	}
	return strings.Join(all, "\n")
}

// The App's token is narrowed, sealed with the run so that it is masked and revoked, and
// asks no more than the App was granted; what is missing is named.
func TestChecksAreReadAsTheApp(t *testing.T) {
	f := newFollowing(t, map[string]secret.String{}, "/none")
	f.app(map[string]string{"checks": "read", "pull_requests": "write", "contents": "write", "metadata": "read"})
	if err := f.services.followCI(f.spec)(t.Context(), steps.Followed(f)); err != nil {
		t.Fatal(err)
	}
	if len(f.said) != 1 || !strings.Contains(f.said[0].Text, `"unit tests": failure`) {
		t.Errorf("said %+v", f.said)
	}
	if told := f.notices(); !strings.Contains(told, "no permission to read actions, statuses;") || !strings.Contains(told, "no check failed") {
		t.Errorf("told %s", told)
	}
	values, err := f.services.secrets.All(t.Context(), f.spec.Run)
	minted := 0
	for name := range values {
		if strings.HasPrefix(name, secretMinted) {
			minted++
		}
	}
	if err != nil || minted != 1 {
		t.Errorf("%d tokens sealed, %v", minted, err)
	}
}

// Without an App it is the user's own token that reads.
func TestChecksAreReadAsTheUser(t *testing.T) {
	f := newFollowing(t, map[string]secret.String{}, "/none")
	if err := f.services.secrets.Put(t.Context(), f.spec.Run, secretGitToken, secret.New(f.fake.UserToken())); err != nil {
		t.Fatal(err)
	}
	if err := f.services.followCI(f.spec)(t.Context(), steps.Followed(f)); err != nil || len(f.said) != 1 {
		t.Errorf("said %+v, told %s, %v", f.said, f.notices(), err)
	}
	f = newFollowing(t, map[string]secret.String{}, "/none")
	if err := f.services.followCI(f.spec)(t.Context(), steps.Followed(f)); err != nil || !strings.Contains(f.notices(), "no GitHub App and no token") {
		t.Errorf("without any: told %s, %v", f.notices(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.services.followCI(f.spec)(ctx, steps.Followed(f)); err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if f.spec.FollowCI = false; f.services.followCI(f.spec) != nil {
		t.Error("followed unasked")
	}
}
