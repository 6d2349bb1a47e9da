package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// hang is how long anything may take: it tells an answer from a hang, nothing more.
const hang = 2 * time.Minute

// root returns the directory of the test's state.
func (c test) root(t *testing.T) string {
	root := t.TempDir()
	if c.deep {
		root = filepath.Join(root, strings.Repeat("d", 100), strings.Repeat("e", 100))
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

// lab is one test with its provider.
type lab struct {
	*testing.T
	Fixture
	root  string
	state string // value of LabelState
}

func newLab(t *testing.T, factory Factory, root string) *lab {
	return &lab{T: t, Fixture: factory(t, root), root: root, state: string(task.NewID())}
}

// context returns a context that ends a hanging test with a useful place.
func (l *lab) context() context.Context {
	ctx, cancel := context.WithTimeout(l.T.Context(), hang)
	l.Cleanup(cancel)
	return ctx
}

// run is a run as far as a provider sees it.
type run struct {
	key  link.HostKey
	boot wire.Boot
	spec sandbox.Spec
}

// newRun returns a run with a directory of its own.
func (l *lab) newRun() run {
	l.Helper()
	id := task.NewID()
	key, err := link.NewKeys(string(id))
	if err != nil {
		l.Fatal(err)
	}
	r := run{key: key, boot: wire.Boot{
		V: wire.Version, Run: string(id), Task: string(task.NewID()), Team: 1, User: 1,
		HostKey: key.Public(), Secret: key.Secret,
		UID: l.UID, GID: l.GID, Home: "/home/agent", Dir: task.WorkspaceDir,
		Env: map[string]string{"CANARY": "canary-in-env"}, Network: string(task.NetworkLink),
		HostGrace: time.Minute,
	}}
	if c, able := l.Provider.(sandbox.Capturer); able {
		r.boot.Capture, r.boot.Allow = c.Captures(sandbox.Network(task.NetworkLink)), []string{rule.All}
	}
	r.spec = sandbox.Spec{
		Name: "insightscli-" + id.Short(), Image: l.Image, Network: sandbox.Network(task.NetworkLink),
		AgentUID: l.UID, AgentGID: l.GID, AgentServer: l.AgentServer,
		Dir: filepath.Join(l.root, string(id)),
		Labels: map[string]string{
			sandbox.LabelRun: string(id), sandbox.LabelTask: r.boot.Task,
			sandbox.LabelOwner: "host/boot/1/1", sandbox.LabelState: l.state,
		},
	}
	if err := os.MkdirAll(r.spec.Dir, 0o700); err != nil {
		l.Fatal(err)
	}
	return r
}

// encoded returns the Spec with its Boot.
func (r run) encoded(t testing.TB) sandbox.Spec {
	t.Helper()
	b, err := json.Marshal(r.boot)
	if err != nil {
		t.Fatal(err)
	}
	r.spec.Boot = b
	return r.spec
}

// create makes the sandbox of r and removes it after the test.
func (l *lab) create(r run) sandbox.Sandbox {
	l.Helper()
	box, err := l.Provider.Create(l.context(), r.encoded(l))
	if err != nil {
		l.Fatalf("create: %v", err)
	}
	l.Cleanup(func() { l.destroy(box) })
	return box
}

// destroy removes a sandbox by a context that the test's end does not reach.
func (l *lab) destroy(box sandbox.Sandbox) {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.T.Context()), hang)
	defer cancel()
	if err := box.Destroy(ctx); err != nil {
		l.Errorf("destroy: %v", err)
	}
}

// connect opens a link and makes the handshake.
func (l *lab) connect(box sandbox.Sandbox, key link.HostKey) *agent.Client {
	l.Helper()
	conn, err := box.Link(l.context())
	if err != nil {
		l.Fatalf("link: %v", err)
	}
	c, err := agent.Connect(l.context(), conn, key, nil)
	if err != nil {
		l.Fatalf("connect: %v", err)
	}
	l.Cleanup(func() { _ = c.Close() })
	return c
}

// start makes a sandbox and connects to it.
func (l *lab) start() (sandbox.Sandbox, *agent.Client, run) {
	l.Helper()
	r := l.newRun()
	box := l.create(r)
	return box, l.connect(box, r.key), r
}

// shell runs a script in the sandbox and returns its output and exit code.
func (l *lab) shell(c *agent.Client, script string) (string, int) {
	l.Helper()
	return l.shellWith(c, script, nil)
}

func (l *lab) shellWith(c *agent.Client, script string, in io.Reader) (string, int) {
	l.Helper()
	var out bytes.Buffer
	code, err := c.Exec(l.context(), sh(script), agent.Stdio{In: in, Out: &out, Err: &out})
	if err != nil {
		l.Fatalf("exec %q: %v", script, err)
	}
	return out.String(), code
}

// want runs a script that must succeed and print want.
func (l *lab) want(c *agent.Client, script, want string) {
	l.Helper()
	if out, code := l.shell(c, script); code != 0 || strings.TrimSpace(out) != want {
		l.Errorf("%s: code %d, printed %q, want %q", script, code, out, want)
	}
}

func sh(script string) wire.Command { return wire.Command{Argv: []string{"/bin/sh", "-c", script}} }

// listed returns the ids of the sandboxes of this test's state.
func (l *lab) listed(p sandbox.Provider) []sandbox.ID {
	l.Helper()
	infos, err := p.List(l.context(), map[string]string{sandbox.LabelState: l.state})
	if err != nil {
		l.Fatalf("list: %v", err)
	}
	var ids []sandbox.ID
	for _, info := range infos {
		ids = append(ids, info.ID)
	}
	return ids
}

// another returns the provider as another process has it.
func (l *lab) another() sandbox.Provider {
	if l.Reopen == nil {
		return l.Provider
	}
	return l.Reopen(l.T)
}

// until repeats check until it is true. Use it only where nothing can be waited on.
func (l *lab) until(what string, check func() bool) {
	l.Helper()
	ctx := l.context()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			l.Fatalf("waited in vain: %s", what)
		}
	}
}
