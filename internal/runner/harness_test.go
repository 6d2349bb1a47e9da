package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

const accessToken = "access-token-of-the-run-0123456789"

// fakeTokens mints the same token for every run and remembers what was revoked.
type fakeTokens struct {
	mu      sync.Mutex
	revoked []task.ID
}

func (*fakeTokens) Mint(context.Context, task.ID, []string, time.Duration) (secret.String, error) {
	return secret.New(accessToken), nil
}

func (*fakeTokens) Renew(context.Context, task.ID, time.Duration) error { return nil }

func (f *fakeTokens) Revoke(_ context.Context, run task.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, run)
	return nil
}

// rig is a state directory with a runner over it, and sandboxes in memory.
type rig struct {
	t        *testing.T
	dir      string
	store    *journal.Store
	provider sandbox.Provider
	tokens   *fakeTokens
	runner   *runner.Runner
	force    chan struct{}
	watch    func(context.Context, task.Spec, map[string]secret.String, func(level, message string)) runner.Watcher
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &rig{
		t: t, dir: dir, store: journal.New(db.DB, dir), tokens: &fakeTokens{}, force: make(chan struct{}),
		provider: memory.New(map[string]agentserver.NewDriver{"exec": execdriver.New}),
	}
	r.runner = r.newRunner("me")
	return r
}

// newRunner returns a runner over the rig's state, as another process would have it.
func (r *rig) newRunner(owner string) *runner.Runner {
	r.t.Helper()
	return r.newRunnerWith(owner, func(*steps.Steps) {})
}

// newRunnerWith is newRunner with a change to its steps.
func (r *rig) newRunnerWith(owner string, change func(*steps.Steps)) *runner.Runner {
	r.t.Helper()
	key, err := seal.Open(filepath.Join(r.dir, "key"))
	if err != nil {
		r.t.Fatal(err)
	}
	secrets := &runner.Secrets{Key: key, Store: r.store}
	s := &steps.Steps{
		Provider: func(context.Context, task.Spec) (sandbox.Provider, error) { return r.provider, nil },
		Tokens:   r.tokens, Secrets: secrets, Repos: repo.New(repo.Options{Dir: r.dir}),
		AgentServer: func(context.Context) (string, error) { return os.Args[0], nil },
		Dir:         r.dir, Owner: "host/boot/1/1", Domain: "test",
	}
	change(s)
	return runner.New(runner.Config{Store: r.store, Secrets: secrets, Owner: owner, Force: r.force, Steps: s, Watch: r.watch})
}

func (r *rig) spec(command ...string) task.Spec {
	return task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1,
		Title: "test", OriginProduct: "user_created", Agent: task.Agent{Name: "exec", Command: command},
		Provider: "memory", Network: task.NetworkLink, Template: "default_base", Mode: task.ModeBackground,
		Timeout: task.Duration(time.Minute), IdleTimeout: task.Duration(time.Minute),
		AgentUID: os.Getuid(), AgentGID: os.Getgid(),
	}
}

// nothingLeft fails the test if the run still holds anything.
func (r *rig) nothingLeft(run task.ID) {
	r.t.Helper()
	boxes, err := r.provider.List(r.t.Context(), map[string]string{sandbox.LabelRun: string(run)})
	if err != nil || len(boxes) != 0 {
		r.t.Errorf("sandboxes left: %v (%v)", boxes, err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "run", string(run))); !os.IsNotExist(err) {
		r.t.Errorf("the run's directory is still there: %v", err)
	}
	sealed, err := r.store.Secrets(r.t.Context(), run)
	if err != nil || len(sealed) != 0 {
		r.t.Errorf("secrets left: %v (%v)", sealed, err)
	}
}

// recorder is a screen that keeps what it was shown, and may react to it.
type recorder struct {
	mu     sync.Mutex
	events []task.Event
	on     func(task.Event)
}

func (r *recorder) Emit(ev task.Event) {
	ev.Params = append([]byte(nil), ev.Params...)
	r.mu.Lock()
	r.events = append(r.events, ev)
	r.mu.Unlock()
	if r.on != nil {
		r.on(ev)
	}
}

// output joins what the command wrote to both streams.
func output(t *testing.T, events []task.Event) string {
	t.Helper()
	var sb strings.Builder
	for _, ev := range events {
		if ev.Kind != task.KindOutput {
			continue
		}
		o, err := ev.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, b, err := o.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		sb.Write(b)
	}
	return sb.String()
}

// stored reads the event log of a run, checking that it has no gap and one end.
func (r *rig) stored(run task.ID) []task.Event {
	r.t.Helper()
	rec, err := r.store.Run(r.t.Context(), run)
	if err != nil {
		r.t.Fatal(err)
	}
	var events []task.Event
	err = r.store.ReadLog(r.t.Context(), rec, 0, func(_ []byte, ev task.Event) error {
		ev.Params = append([]byte(nil), ev.Params...)
		events = append(events, ev)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for i, ev := range events {
		if ev.Seq != uint64(i+1) {
			r.t.Fatalf("event %d has number %d", i+1, ev.Seq)
		}
		if last := i == len(events)-1; (ev.Kind == task.KindFinished) != last {
			r.t.Fatalf("event %d of %d is %s", i+1, len(events), ev.Kind)
		}
	}
	return events
}
