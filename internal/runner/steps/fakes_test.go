package steps

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

const testRun = task.ID("11111111-0000-4000-8000-000000000000")

// vault keeps the secrets of runs in memory.
type vault map[task.ID]map[string]secret.String

func (v vault) Get(_ context.Context, run task.ID, name string) (secret.String, error) {
	s, ok := v[run][name]
	if !ok {
		return secret.String{}, errs.New("vault.Get", errs.NotFound, "", "no secret %s", name)
	}
	return s, nil
}

func (v vault) All(_ context.Context, run task.ID) (map[string]secret.String, error) {
	return maps.Clone(v[run]), nil
}

func (v vault) Put(_ context.Context, run task.ID, name string, value secret.String) error {
	if v[run] == nil {
		v[run] = map[string]secret.String{}
	}
	v[run][name] = value
	return nil
}

// mint counts the live tokens of runs.
type mint struct {
	live    map[task.ID]int
	scopes  []string
	failing error
}

func (m *mint) Mint(_ context.Context, run task.ID, scopes []string, _ time.Duration) (secret.String, error) {
	m.live[run], m.scopes = 1, scopes
	return secret.New("insx_canary"), m.failing
}

func (m *mint) Renew(context.Context, task.ID, time.Duration) error { return m.failing }

func (m *mint) Revoke(_ context.Context, run task.ID) error {
	delete(m.live, run)
	return m.failing
}

// watched is a provider that remembers what it was asked to create.
type watched struct {
	sandbox.Provider
	asked  sandbox.Spec
	change func(sandbox.Sandbox) sandbox.Sandbox
	fails  error
}

func (w *watched) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	w.asked = spec
	if w.fails != nil {
		return nil, w.fails
	}
	box, err := w.Provider.Create(ctx, spec)
	if err == nil && w.change != nil {
		box = w.change(box)
	}
	return box, err
}

// fixture is Steps over a state directory of its own.
type fixture struct {
	*Steps
	t        *testing.T
	vault    vault
	mint     *mint
	provider *watched
	spec     task.Spec
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{
		t: t, vault: vault{}, mint: &mint{live: map[task.ID]int{}},
		provider: &watched{Provider: memory.New(map[string]agentserver.NewDriver{execdriver.Name: execdriver.New})},
		spec: task.Spec{
			V: task.SpecVersion, Task: "22222222-0000-4000-8000-000000000000", Run: testRun, Team: 7, User: 8,
			Agent: task.Agent{Name: "exec", Command: []string{"true"}}, Scopes: []string{"query:read"},
		},
	}
	f.Steps = &Steps{
		Provider:    func(context.Context, task.Spec) (sandbox.Provider, error) { return f.provider, nil },
		Tokens:      f.mint,
		Secrets:     f.vault,
		Repos:       repo.New(repo.Options{Dir: dir}),
		AgentServer: func(context.Context) (string, error) { return "", nil },
		JWTKey:      func(context.Context) ([]byte, string, error) { return []byte("pem"), "kid", nil },
		Dir:         dir, Owner: "owner", Domain: "domain",
	}
	key, err := NewLinkKey(testRun)
	f.must(err)
	f.must(f.vault.Put(t.Context(), testRun, SecretLinkKey, key))
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) provision() (ProvisionOut, error) {
	return f.Provision(f.t.Context(), ProvisionIn{Spec: f.spec, Name: "insights-x"})
}

// boxed provisions a sandbox that ends with the test.
func (f *fixture) boxed() sandbox.Sandbox {
	f.t.Helper()
	out, err := f.provision()
	f.must(err)
	box, err := f.Open(f.t.Context(), f.spec, out.Sandbox)
	f.must(err)
	f.t.Cleanup(func() { f.must(box.Destroy(context.Background())) })
	return box
}

// exists reports whether the run's directory is there.
func (f *fixture) exists() bool {
	_, err := os.Stat(filepath.Join(f.Dir, "run", string(testRun)))
	return !errors.Is(err, os.ErrNotExist)
}

// stuck is a sandbox that cannot be removed.
type stuck struct{ sandbox.Sandbox }

func (stuck) Destroy(context.Context) error {
	return errs.New("stuck.Destroy", errs.Incomplete, "", "device or resource busy")
}

// absent is a machine without the provider.
func absent(err error) func(context.Context, task.Spec) (sandbox.Provider, error) {
	return func(context.Context, task.Spec) (sandbox.Provider, error) { return nil, err }
}
