package runner_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// fakeTokens mints the same token for every run.
type fakeTokens struct{}

const fakeToken = "fake-access-token-of-the-run"

func (fakeTokens) Mint(context.Context, task.ID, []string, time.Duration) (secret.String, error) {
	return secret.New(fakeToken), nil
}
func (fakeTokens) Revoke(context.Context, task.ID) error { return nil }

// bench is a state directory with a runner over it.
type rig struct {
	t      *testing.T
	dir    string
	store  *journal.Store
	runner *runner.Runner
	force  chan struct{}
}

func newRig(t *testing.T) *rig {
	t.Helper()
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
	r := &rig{t: t, dir: dir, store: journal.New(db.DB, dir), force: make(chan struct{})}
	secrets := &runner.Secrets{Key: key, Store: r.store}
	provider := local.New(local.Options{Root: filepath.Join(dir, "run")})
	r.runner = runner.New(runner.Config{
		Store: r.store, Secrets: secrets, Owner: "me", Force: r.force,
		Steps: &steps.Steps{
			Provider: func(context.Context, string) (sandbox.Provider, error) { return provider, nil },
			Tokens:   fakeTokens{}, Secrets: secrets, Repos: repo.New(repo.Options{Dir: dir}),
			AgentServer: func(context.Context) (string, error) { return agentServer(t), nil },
			Dir:         dir, Owner: "host/boot/1/1", Domain: "test",
		},
	})
	return r
}

var buildOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join("/tmp", "ias-test")
	cmd := exec.Command("go", "build", "-o", path, "github.com/Insights/insightscli/cmd/insights-agent-server")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return path, errOf(err, out)
})

func errOf(err error, out []byte) error {
	if err == nil {
		return nil
	}
	return &buildError{string(out)}
}

type buildError struct{ s string }

func (b *buildError) Error() string { return b.s }

func agentServer(t *testing.T) string {
	p, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *rig) spec(command ...string) task.Spec {
	return task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1,
		Title: "test", OriginProduct: "user_created", Agent: task.Agent{Name: "exec", Command: command},
		Provider: "local", Network: task.NetworkLink, Template: "default_base", Mode: task.ModeBackground,
		Timeout: task.Duration(time.Minute), IdleTimeout: task.Duration(time.Minute), AgentUID: 1000, AgentGID: 1000,
	}
}

type recorder struct {
	mu     sync.Mutex
	events []task.Event
}

func (r *recorder) Emit(ev task.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ev.Params = append([]byte(nil), ev.Params...)
	r.events = append(r.events, ev)
}
