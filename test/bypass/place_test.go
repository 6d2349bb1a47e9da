//go:build linux

package bypass

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// place is where sandboxes are made.
type place struct {
	provider sandbox.Provider
	image    string
	uid      int // of the agent
}

// hang tells an answer from none.
const hang = 3 * time.Minute

// policy is that of the restricted sandboxes.
func policy() []string {
	return []string{
		"good.example", "*.wild.example", "port.example:5432", "GET http://api.example/v1/*",
		"*.bad.example", "*.rebind.example", "*.mixed.example", "*.chain.example",
	}
}

func dockerPlace(t testing.TB, s stage, uid int) place {
	t.Helper()
	testenv.Need(t, "a Docker engine at a unix socket (.ci/docker starts one): "+s.Why, s.Image != "")
	p := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST")})
	t.Cleanup(func() { _ = p.Close() })
	return place{provider: p, image: s.Image, uid: uid}
}

func localPlace(t testing.TB, s stage) place {
	t.Helper()
	p := local.New(local.Options{Root: t.TempDir()})
	err := p.Probe(t.Context(), s.server())
	testenv.Need(t, "local sandboxes", err == nil)
	uid := os.Geteuid()
	if uid == 0 {
		uid = 1000
	}
	return place{provider: p, uid: uid}
}

// box is a live sandbox, with the host's side of its network.
type box struct {
	client *agent.Client
	dir    string

	t       testing.TB
	sandbox sandbox.Sandbox
	gate    *egress.Gate
	serving sync.WaitGroup

	mu      sync.Mutex // guards what follows
	denied  []task.Denied
	records []egress.Record
	closed  bool
}

// open makes a sandbox with a policy. It ends with the test, or by close.
func (p place) open(t testing.TB, s stage, env map[string]string, rules ...string) *box {
	t.Helper()
	set, err := rule.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	id := task.NewID()
	key, err := link.NewKeys(string(id))
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, dir: filepath.Join(t.TempDir(), string(id))}
	b.gate = egress.New(egress.Config{Set: set, Run: id, Resolve: resolve, OnDenied: b.refused, Audit: b.audit})
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: string(id), Task: string(task.NewID()), Team: 1, User: 1,
		HostKey: key.Public(), Secret: key.Secret, UID: p.uid, GID: p.uid, Home: "/home/agent", Dir: task.WorkspaceDir,
		Env: env, Network: string(task.NetworkCustom), HostGrace: time.Minute, Capture: true, Allow: rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	b.sandbox, err = p.provider.Create(ctx, sandbox.Spec{
		Name: "insightscli-bypass-" + id.Short(), Image: p.image, Network: sandbox.Network(task.NetworkCustom),
		AgentUID: p.uid, AgentGID: p.uid, Boot: boot, AgentServer: s.server(), Dir: b.dir,
		Mounts: []sandbox.Mount{{Kind: sandbox.MountBind, Source: s.tools(), Target: toolsDir, ReadOnly: true}},
		Labels: map[string]string{
			sandbox.LabelRun: string(id), sandbox.LabelTask: "bypass", sandbox.LabelOwner: "bypass", sandbox.LabelState: b.dir,
		},
	})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(b.close)
	conn, err := b.sandbox.Link(ctx)
	if err != nil {
		t.Fatalf("link: %v", err)
	}
	b.client, err = agent.Connect(ctx, conn, key, map[string]link.Handler{wire.ServiceEgress: b.serve})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	return b
}

// toolsDir is where the tools are in a sandbox.
const toolsDir = task.WorkspaceDir + "/tools"

func (b *box) serve(ctx context.Context, conn net.Conn) error {
	b.serving.Add(1)
	defer b.serving.Done()
	return b.gate.ServeConn(ctx, conn)
}

func (b *box) refused(d task.Denied) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = append(b.denied, d)
}

func (b *box) audit(r egress.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
}

// close ends the sandbox and waits for every connection that the host has made for it.
func (b *box) close() {
	b.t.Helper()
	if b.closed {
		return
	}
	b.closed = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), hang)
	defer cancel()
	if b.client != nil {
		_ = b.client.Close()
	}
	if err := b.sandbox.Destroy(ctx); err != nil {
		b.t.Errorf("destroy: %v", err)
	}
	b.serving.Wait()
	b.gate.Close()
}

// sh runs a script and returns what it said.
func (b *box) sh(script string) (string, int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), hang)
	defer cancel()
	var out bytes.Buffer
	code, err := b.client.Exec(ctx, wire.Command{Argv: []string{"/bin/sh", "-c", script}}, agent.Stdio{Out: &out, Err: &out})
	if err != nil {
		b.t.Fatalf("exec: %v\n%s", err, out.String())
	}
	return out.String(), code
}

// job and result are the shapes of the program attempt.
type job struct {
	Name   string
	Script string
	Env    []string
	Alone  bool
}

type result struct {
	Name   string
	Output string
}

// wanted are things of others: a file of the host, a directory of another run, and the word
// that is in them.
type wanted struct {
	canary, secret, other string
	hosts                 string
	port                  int
	abstract              string
}

// jobs makes those of attempts, by their numbers in the table.
func (s stage) jobs(w wanted, rows []attempt, numbers []int, series int, more ...string) []job {
	var out []job
	for _, n := range numbers {
		r := rows[n]
		env := append(variables(number(series, n)), "SECRET="+w.secret, "OTHER="+w.other, "HOSTS="+w.hosts, "PORT="+strconv.Itoa(w.port), "ABSTRACT="+w.abstract)
		out = append(out, job{Name: r.name, Script: prelude + r.sh, Env: append(env, more...), Alone: r.alone})
	}
	return out
}

// try runs jobs in the sandbox.
func (b *box) try(jobs []job) map[string]string {
	b.t.Helper()
	in, err := json.Marshal(jobs)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), hang)
	defer cancel()
	var out, said bytes.Buffer
	code, err := b.client.Exec(ctx, wire.Command{Argv: []string{toolsDir + "/attempt", "run"}}, agent.Stdio{In: bytes.NewReader(in), Out: &out, Err: &said})
	if err != nil || code != 0 {
		b.t.Fatalf("the attempts: code %d, %v\n%s", code, err, said.String())
	}
	return results(b.t, out.Bytes())
}

func results(t testing.TB, text []byte) map[string]string {
	t.Helper()
	var list []result
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("what the attempts said: %v\n%s", err, text)
	}
	all := map[string]string{}
	for _, r := range list {
		all[r.Name] = r.Output
	}
	return all
}

// tryFree runs jobs where nothing is enforced, in this network namespace or, with parent, in
// that of a process.
func (s stage) tryFree(t testing.TB, w *world, parent int, jobs []job) map[string]string {
	t.Helper()
	dir := t.TempDir()
	ln, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	w.accept(ln, "unix", w.talk)
	in, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), s.attempt(), "off", dir, s.attempt(), "run")
	cmd.Env = append(os.Environ(), "http_proxy=http://127.0.0.1:15001", "https_proxy=http://127.0.0.1:15001")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if err := inNamespace(parent, cmd.Run); err != nil {
		t.Fatalf("the attempts without a sandbox: %v\n%s%s", err, said.String(), out.String())
	}
	return results(t, out.Bytes())
}

// inNamespace calls f on a thread in the network namespace of a process, 0 for this one.
func inNamespace(pid int, f func() error) error {
	if pid == 0 {
		return f()
	}
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			_ = ns.Close()
		}
		if err == nil {
			err = f()
		}
		failed <- err
	}()
	return <-failed
}

// prepare makes what is wanted.
func (s stage) prepare(t testing.TB) wanted {
	t.Helper()
	dir := t.TempDir()
	w := wanted{
		canary: "canary" + string(task.NewID()), secret: filepath.Join(dir, "secret"), other: filepath.Join(dir, "other"),
		hosts: strings.Join(s.Addrs, " "), port: s.Port, abstract: s.Name,
	}
	if err := os.MkdirAll(w.other, 0o755); err != nil {
		t.Fatal(err)
	}
	shm := "/dev/shm/insights-bypass-" + strconv.Itoa(os.Getpid())
	for _, path := range []string{w.secret, filepath.Join(w.other, "secret"), shm} {
		if err := os.WriteFile(path, []byte(w.canary+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Remove(shm) })
	cmd := exec.CommandContext(t.Context(), s.attempt(), "victim", "stay", w.canary)
	cmd.Args = []string{"attempt", "serve", "unix", "@" + w.canary, "x"}
	cmd.Env = []string{"INSIGHTS_BYPASS_CANARY=" + w.canary}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return w
}
