package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// serverEnv names an agent server that is built already: an ordinary user's tests
// get the one of root's.
const serverEnv = "INSIGHTSCLI_TEST_SERVER"

// buildServer builds the agent server once for all tests.
var buildServer = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(serverEnv); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "insightscli-docker-test-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "insights-agent-server")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/Insights/insightscli/cmd/insights-agent-server")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// TestMain removes what buildServer has made.
func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildServer(); err == nil && os.Getenv(serverEnv) == "" {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// request is a spec and the key that its PID 1 answers to.
type request struct {
	sandbox.Spec
	key link.HostKey
}

// newRequest returns a spec for a fresh run; change is applied before it is used.
func newRequest(t testing.TB, image string, network sandbox.Network) request {
	t.Helper()
	server, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	run := "t" + randomHex(8)
	key, err := link.NewKeys(run)
	if err != nil {
		t.Fatal(err)
	}
	boot := wire.Boot{
		V: wire.Version, Run: run, Task: "task", HostKey: key.Public(), Secret: key.Secret,
		UID: agentID(), GID: agentID(), Home: "/home/agent", Dir: "/tmp/workspace", Network: string(network),
		Capture: network != networkFull, Allow: []string{"*"},
	}
	data, err := json.Marshal(boot)
	if err != nil {
		t.Fatal(err)
	}
	return request{key: key, Spec: sandbox.Spec{
		Name: "test", Image: image, Network: network, Boot: data,
		Labels: map[string]string{
			sandbox.LabelRun: run, sandbox.LabelTask: "task",
			sandbox.LabelOwner: "test", sandbox.LabelState: "test-" + run,
		},
		AgentUID: agentID(), AgentGID: agentID(), AgentServer: server, Dir: t.TempDir(),
	}}
}

// agentID is the agent's uid and gid: those of an ordinary user who runs the tests,
// and for root 1000.
func agentID() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return 1000
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// within bounds a test's wait on an engine: an answer, not a speed.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// mustCreate creates a sandbox that is gone after the test.
func mustCreate(t testing.TB, p *Provider, r request) *Sandbox {
	t.Helper()
	box, err := p.Create(within(t, time.Minute), r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { destroy(t, box) })
	return box.(*Sandbox)
}

func destroy(t testing.TB, box sandbox.Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := box.Destroy(ctx); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

// mustConnect makes the link and its handshake.
func mustConnect(t testing.TB, box sandbox.Sandbox, key link.HostKey) *agent.Client {
	t.Helper()
	ctx := within(t, time.Minute)
	conn, err := box.Link(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := agent.Connect(ctx, conn, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sh runs a shell command as the agent and returns its output, errors included.
func sh(t testing.TB, c *agent.Client, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code, err := c.Exec(within(t, time.Minute), wire.Command{Argv: []string{"sh", "-c", script}}, agent.Stdio{Out: &out, Err: &out})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(out.String()), code
}

// wantSh runs a shell command that must succeed and print want.
func wantSh(t testing.TB, c *agent.Client, script, want string) {
	t.Helper()
	if got, code := sh(t, c, script); got != want || code != 0 {
		t.Errorf("%s printed %q and ended with %d; want %q and 0", script, got, code, want)
	}
}

// eachTransport runs a test over both transports of the real engine.
func eachTransport(t *testing.T, test func(t *testing.T, p *Provider)) {
	for _, transport := range []Transport{TransportSocket, TransportExec} {
		t.Run(string(transport), func(t *testing.T) { test(t, realEngine(t, transport)) })
	}
}

// nothingLeft fails when the engine still has something of the run.
func nothingLeft(t testing.TB, p *Provider, run string) {
	t.Helper()
	ctx := within(t, time.Minute)
	labels := map[string]string{sandbox.LabelRun: run}
	boxes, err := p.List(ctx, labels)
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := p.engine.overlays(ctx, labels)
	if err != nil {
		t.Fatal(err)
	}
	if len(boxes)+len(volumes) > 0 {
		t.Errorf("left of run %s: containers %v, volumes %v", run, boxes, volumes)
	}
}

func TestAgentRunsHardened(t *testing.T) {
	eachTransport(t, func(t *testing.T, p *Provider) {
		r := newRequest(t, baseImage(t, p), networkFull)
		box := mustCreate(t, p, r)
		c := mustConnect(t, box, r.key)
		id := strconv.Itoa(agentID())
		wantSh(t, c, "id -u; id -g; pwd; echo $HOME", id+"\n"+id+"\n/tmp/workspace\n/home/agent")
		wantSh(t, c, "touch /home/agent/x /tmp/workspace/y && echo ok", "ok")
		wantSh(t, c, "awk '/^Cap(Eff|Prm|Bnd|Inh|Amb)/{print $2}' /proc/self/status | sort -u", "0000000000000000")
		wantSh(t, c, "awk '/^NoNewPrivs|^Seccomp:/{print $2}' /proc/self/status", "1\n2")
		wantSh(t, c, "ls /run/insights/boot.json 2>&1 | grep -c 'No such\\|denied'", "1")
		wantSh(t, c, "command -v insights-agent-server", wire.ServerPath)
		if out, code := sh(t, c, "ls -l /var/run/docker.sock"); code == 0 {
			t.Errorf("the engine's socket is inside: %s", out)
		}
	})
}

func TestPID1KeepsLittle(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	c := mustConnect(t, mustCreate(t, p, r), r.key)
	wantSh(t, c, "awk '/^CapEff/{print $2}' /proc/1/status", "00000000000000e0") // KILL, SETGID, SETUID
}

func TestLoopbackHasBothFamilies(t *testing.T) {
	p := realEngine(t, TransportAuto)
	for _, network := range []sandbox.Network{networkFull, networkLink} {
		t.Run(string(network), func(t *testing.T) {
			r := newRequest(t, baseImage(t, p), network)
			c := mustConnect(t, mustCreate(t, p, r), r.key)
			wantSh(t, c, `python3 -c '
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    s = socket.socket(family)
    s.bind((address, 80))
    print("ok")
'`, "ok\nok")
		})
	}
}

func TestNetworkLevels(t *testing.T) {
	p := realEngine(t, TransportAuto)
	full := newRequest(t, baseImage(t, p), networkFull)
	c := mustConnect(t, mustCreate(t, p, full), full.key)
	wantSh(t, c, "getent hosts host.docker.internal | wc -l", "1")
	wantSh(t, c, "ls /sys/class/net | grep -c eth", "1")

	for _, level := range []sandbox.Network{networkTrusted, networkCustom, networkLink} {
		alone := newRequest(t, baseImage(t, p), level)
		c = mustConnect(t, mustCreate(t, p, alone), alone.key)
		wantSh(t, c, "ls /sys/class/net; head -n 1 /etc/resolv.conf", "lo\nnameserver 127.0.0.1")
	}
}

func TestContainersDoNotReachEachOther(t *testing.T) {
	p := realEngine(t, TransportAuto)
	a := newRequest(t, baseImage(t, p), networkFull)
	b := newRequest(t, baseImage(t, p), networkFull)
	ca := mustConnect(t, mustCreate(t, p, a), a.key)
	cb := mustConnect(t, mustCreate(t, p, b), b.key)
	address, _ := sh(t, ca, "hostname -i")
	serve, stop := context.WithCancel(within(t, time.Minute))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_, _ = ca.Exec(serve, wire.Command{Argv: []string{"python3", "-m", "http.server", "8000"}}, agent.Stdio{})
	}()
	defer func() { stop(); <-served }()
	wantSh(t, ca, "curl -so /dev/null --retry 50 --retry-connrefused --retry-delay 1 http://127.0.0.1:8000 && echo up", "up")
	if out, code := sh(t, cb, "curl -s --max-time 2 http://"+address+":8000"); code == 0 {
		t.Errorf("another container's server answered: %s", out)
	}
}

func TestReopenAndList(t *testing.T) {
	eachTransport(t, func(t *testing.T, p *Provider) {
		r := newRequest(t, baseImage(t, p), networkLink)
		box := mustCreate(t, p, r)
		infos, err := p.List(within(t, time.Minute), map[string]string{sandbox.LabelState: r.Labels[sandbox.LabelState]})
		if err != nil || len(infos) != 1 || infos[0].ID != box.ID() || !infos[0].Running {
			t.Fatalf("List: %+v, %v", infos, err)
		}
		other := New(p.engine.opts)
		defer func() { _ = other.Close() }()
		again, err := other.Open(within(t, time.Minute), box.ID())
		if err != nil {
			t.Fatal(err)
		}
		c := mustConnect(t, again, r.key)
		wantSh(t, c, "echo again", "again")
		destroy(t, again)
		destroy(t, box)
		if _, err := other.Open(within(t, time.Minute), box.ID()); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("Open after Destroy: %v", err)
		}
		if _, err := box.Link(within(t, time.Minute)); err == nil {
			t.Error("Link after Destroy succeeded")
		}
		nothingLeft(t, p, r.Labels[sandbox.LabelRun])
	})
}

func TestCreateReplacesTheRunsContainer(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	first := mustCreate(t, p, r)
	second := mustCreate(t, p, r)
	if first.ID() == second.ID() {
		t.Fatal("the first container was used again")
	}
	c := mustConnect(t, second, r.key)
	wantSh(t, c, "echo ok", "ok")
	infos, err := p.List(within(t, time.Minute), map[string]string{sandbox.LabelRun: r.Labels[sandbox.LabelRun]})
	if err != nil || len(infos) != 1 || infos[0].ID != second.ID() {
		t.Errorf("List: %+v, %v", infos, err)
	}
}

// A cancelled Create leaves nothing, at whatever moment it was cancelled.
func TestCancelledCreateLeavesNothing(t *testing.T) {
	p := realEngine(t, TransportAuto)
	image := baseImage(t, p)
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			r := newRequest(t, image, networkFull)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			box, err := p.Create(ctx, r.Spec)
			if err == nil {
				destroy(t, box)
			}
			nothingLeft(t, p, r.Labels[sandbox.LabelRun])
			if _, err := os.Stat(filepath.Join(r.Dir, "link", wire.BootName)); err == nil {
				t.Error("boot.json is left")
			}
		})
	}
}

// A PID 1 that dies at once is reported within moments, with what it said (C12).
func TestServerThatDiesIsReported(t *testing.T) {
	eachTransport(t, func(t *testing.T, p *Provider) {
		r := newRequest(t, baseImage(t, p), networkLink)
		r.AgentServer = filepath.Join(t.TempDir(), "server")
		script := "#!/bin/sh\n[ $1 = link ] && exit 1\necho first; echo cannot start: no teapot >&2; exit 42\n"
		if err := os.WriteFile(r.AgentServer, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		box := mustCreate(t, p, r)
		_, err := box.Link(within(t, 30*time.Second))
		if err == nil {
			t.Fatal("Link succeeded")
		}
		for _, part := range []string{"42", "no teapot"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error %q does not mention %q", err, part)
			}
		}
		end, err := box.Wait(within(t, 30*time.Second))
		if err != nil || end.Code != 42 {
			t.Errorf("Wait: %+v, %v", end, err)
		}
		destroy(t, box)
		nothingLeft(t, p, r.Labels[sandbox.LabelRun])
	})
}

// What remains of a run when the state is gone is found by label and removed by the
// same run's next Create (C4).
func TestLeftoversAreNotInTheWay(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	box := mustCreate(t, p, r)
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	r.Dir = t.TempDir()
	c := mustConnect(t, mustCreate(t, p, r), r.key)
	wantSh(t, c, "echo ok", "ok")
	destroy(t, box)
}

func TestWaitEndsWithTheSandbox(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	box := mustCreate(t, p, r)
	c := mustConnect(t, box, r.key)
	if err := c.Shutdown(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if end, err := box.Wait(within(t, time.Minute)); err != nil || end.Code != 0 {
		t.Errorf("Wait: %+v, %v", end, err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p := realEngine(t, TransportAuto)
	box := mustCreate(t, p, newRequest(t, baseImage(t, p), networkLink))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := box.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
}

// Runs at the same time, with the network made by whoever is first (C5).
func TestManyRunsAtOnce(t *testing.T) {
	p := realEngine(t, TransportAuto)
	image := baseImage(t, p)
	removeBridge(t, p)
	var all sync.WaitGroup
	for range 20 {
		r := newRequest(t, image, networkFull)
		all.Go(func() {
			own := New(p.engine.opts) // as from a process of its own
			defer func() { _ = own.Close() }()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			if err := roundTrip(ctx, own, r); err != nil {
				t.Error(err)
			}
			nothingLeft(t, own, r.Labels[sandbox.LabelRun])
		})
	}
	all.Wait()
}

// roundTrip is the life of one sandbox.
func roundTrip(ctx context.Context, p *Provider, r request) error {
	box, err := p.Create(ctx, r.Spec)
	if err != nil {
		return err
	}
	var conn net.Conn
	if conn, err = box.Link(ctx); err == nil {
		var c *agent.Client
		if c, err = agent.Connect(ctx, conn, r.key, nil); err == nil {
			_, err = c.Exec(ctx, wire.Command{Argv: []string{"true"}}, agent.Stdio{})
			_ = c.Close()
		}
	}
	return errors.Join(err, box.Destroy(ctx))
}
