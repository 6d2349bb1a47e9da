package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/testenv"
)

// serverEnv names the agent-server binary that the tests run; TestMain builds it
// unless a parent test has.
const serverEnv = "INSIGHTSCLI_TEST_SERVER"

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv(serverEnv) == "" {
		dir, err := os.MkdirTemp("", "local-test-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		_ = os.Chmod(dir, 0o755) // other uids run it too
		server := filepath.Join(dir, "insights-agent-server")
		for binary, source := range map[string]string{
			server: "../../../cmd/insights-agent-server", attemptsOf(server): "./testdata/attempts",
		} {
			build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, source)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", source, err, out)
				return 1
			}
		}
		_ = os.Setenv(serverEnv, server)
	}
	return m.Run()
}

// attemptsOf is where the program that plays the agent lies beside the server.
func attemptsOf(server string) string {
	return filepath.Join(filepath.Dir(server), "attempts", "attempts")
}

// agentID is the uid and gid of the agent in the tests.
func agentID() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return 1000
}

func needNamespaces(t testing.TB) {
	t.Helper()
	err := New(Options{}).Probe(t.Context(), os.Getenv(serverEnv))
	testenv.Need(t, fmt.Sprintf("local sandboxes (%v)", err), err == nil)
}

// box is a live sandbox with a client.
type box struct {
	provider *Provider
	sandbox  sandbox.Sandbox
	spec     sandbox.Spec
	key      link.HostKey
	client   *agent.Client
}

func newSpec(t testing.TB, root, run string) (sandbox.Spec, link.HostKey) {
	t.Helper()
	key, err := link.NewKeys(run)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: run, Task: "task", HostKey: key.Public(), Secret: key.Secret,
		UID: agentID(), GID: agentID(), Home: "/home/agent", Dir: "/tmp/workspace",
		Env: map[string]string{"CANARY": "dd6f1a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{
		Name: run, Network: "link", AgentUID: agentID(), AgentGID: agentID(), Boot: boot, Dir: dir,
		AgentServer: os.Getenv(serverEnv),
		Labels: map[string]string{
			sandbox.LabelRun: run, sandbox.LabelTask: "task", sandbox.LabelOwner: "test", sandbox.LabelState: root,
		},
	}, key
}

// newBox makes a sandbox that ends with the test; change may edit its Spec.
func newBox(t testing.TB, change func(*sandbox.Spec)) *box {
	t.Helper()
	needNamespaces(t)
	root := t.TempDir()
	spec, key := newSpec(t, root, "r1")
	if change != nil {
		change(&spec)
	}
	b := &box{provider: New(Options{Root: root}), spec: spec, key: key}
	s, err := b.provider.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	b.sandbox = s
	t.Cleanup(func() {
		if err := s.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Destroy: %v", err)
		}
	})
	b.connect(t, s)
	return b
}

func (b *box) connect(t testing.TB, s sandbox.Sandbox) {
	t.Helper()
	conn, err := s.Link(t.Context())
	if err != nil {
		t.Fatalf("Link: %v", err)
	}
	if b.client, err = agent.Connect(t.Context(), conn, b.key, nil); err != nil {
		t.Fatalf("Connect: %v", err)
	}
	client := b.client
	t.Cleanup(func() { _ = client.Close() })
}

// run executes a command inside and returns what it printed and its code.
func (b *box) run(t testing.TB, argv ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code, err := b.client.Exec(t.Context(), wire.Command{Argv: argv}, agent.Stdio{Out: &out, Err: &out})
	if err != nil {
		t.Fatalf("exec %q: %v", argv, err)
	}
	return strings.TrimRight(out.String(), "\n"), code
}

// sh is run for a shell script that must succeed.
func (b *box) sh(t testing.TB, script string) string {
	t.Helper()
	out, code := b.run(t, "sh", "-c", script)
	if code != 0 {
		t.Fatalf("%s\nexit %d: %s", script, code, out)
	}
	return out
}

// pid1 is the host's number of the sandbox's first process.
func (b *box) pid1(t testing.TB) int {
	t.Helper()
	r, err := readRecord(b.spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return r.PID
}

// asUser runs the tests that match pattern again as an ordinary user with a home of
// its own, when this process is root.
func asUser(t *testing.T, pattern string) {
	const uid = 1001
	if os.Geteuid() != 0 {
		t.Skip("runs under the ordinary user's own uid already")
	}
	dir, err := os.MkdirTemp("", "local-user-*") //nolint:usetesting // the other user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile(must(os.Executable()))
	if err != nil {
		t.Fatal(err)
	}
	binary, home := filepath.Join(dir, "local.test"), filepath.Join(dir, "home")
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(binary, self, 0o755), os.Mkdir(home, 0o700), os.Chown(home, uid, uid))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+pattern, "-test.v")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid %d:\n%s", uid, out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatal("nothing ran")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
