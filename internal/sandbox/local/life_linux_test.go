package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/sandbox"
)

const creatorEnv = "INSIGHTSCLI_TEST_CREATOR"

// TestHelperCreator is no test: as another process it makes a sandbox and waits to
// be killed.
func TestHelperCreator(t *testing.T) {
	root := os.Getenv(creatorEnv)
	if root == "" {
		t.Skip("is the other process of TestSandboxOutlivesItsCreator")
	}
	spec, key := newSpec(t, root, "r1")
	if _, err := New(Options{Root: root}).Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	data := append(must(key.Bytes()), key.Secret...)
	if err := os.WriteFile(filepath.Join(root, "key"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\nready")
	<-t.Context().Done()
}

func TestSandboxOutlivesItsCreator(t *testing.T) {
	needNamespaces(t)
	root := t.TempDir()
	creator := exec.CommandContext(t.Context(), must(os.Executable()), "-test.run=^TestHelperCreator$", "-test.timeout=1m")
	creator.Env = append(os.Environ(), creatorEnv+"="+root)
	out := must(creator.StdoutPipe())
	if err := creator.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatalf("the creator failed: %v", creator.Wait())
		}
		if lines.Text() == "ready" {
			break
		}
	}
	if err := creator.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = creator.Wait()

	p := New(Options{Root: root})
	infos, err := p.List(t.Context(), map[string]string{sandbox.LabelRun: "r1"})
	if err != nil || len(infos) != 1 || !infos[0].Running || infos[0].ID != "r1" {
		t.Fatalf("List: %+v, %v", infos, err)
	}
	s, err := p.Open(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	data := must(os.ReadFile(filepath.Join(root, "key")))
	b := &box{provider: p, sandbox: s, key: must(link.ParseKeys("r1", data[:32], data[32:]))}
	b.connect(t, s)
	if got := b.sh(t, "echo still here"); got != "still here" {
		t.Errorf("got %q", got)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), "r1"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("after Destroy: %v", err)
	}
}

func TestSandboxLeavesNothing(t *testing.T) {
	b := newBox(t, func(s *sandbox.Spec) { s.PIDs, s.MemoryMiB = 200, 256 })
	b.sh(t, "sleep 1000 >/dev/null 2>&1 & mkdir -p /run/insights/d/e && chmod 0 /run/insights/d || true")
	pid, record := b.pid1(t), must(readRecord(b.spec.Dir))
	for range 2 {
		if err := b.sandbox.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("PID 1 is still there: %v", err)
	}
	for _, dir := range record.Cgroups {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	if mounts := string(must(os.ReadFile("/proc/self/mountinfo"))); strings.Contains(mounts, b.provider.root) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	left := must(os.ReadDir(b.spec.Dir))
	if len(left) > 0 {
		t.Errorf("left in the directory: %v", left)
	}
}

func TestSandboxEndIsSeen(t *testing.T) {
	b := newBox(t, nil)
	if err := syscall.Kill(b.pid1(t), syscall.SIGTERM); err != nil { // dropped: PID 1 has no handler
		t.Fatal(err)
	}
	if err := syscall.Kill(b.pid1(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	exit, err := b.sandbox.Wait(t.Context())
	if err != nil || exit.Code != 128+9 {
		t.Errorf("Wait: %+v, %v", exit, err)
	}
	if _, err := b.sandbox.Link(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("Link: %v", err)
	}
	infos, err := b.provider.List(t.Context(), nil)
	if err != nil || len(infos) != 1 || infos[0].Running {
		t.Errorf("List: %+v, %v", infos, err)
	}
}

func TestSandboxWaitEndsWithItsContext(t *testing.T) {
	b := newBox(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.sandbox.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
}

func TestSandboxCreateReplacesTheOneBefore(t *testing.T) {
	b := newBox(t, nil)
	first := b.pid1(t)
	again, err := b.provider.Create(t.Context(), b.spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Destroy(t.Context()) }()
	if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the first one still runs: %v", err)
	}
	if infos := must(b.provider.List(t.Context(), nil)); len(infos) != 1 {
		t.Errorf("List: %+v", infos)
	}
}

func TestSandboxCreateFailsCleanly(t *testing.T) {
	needNamespaces(t)
	missing := sandbox.Mount{Kind: sandbox.MountBind, Source: "/nonexistent", Target: "/tmp/workspace/x"}
	inside := sandbox.Mount{Kind: sandbox.MountBind, Source: "/usr", Target: "/usr/nowhere/at/all"}
	for name, change := range map[string]func(*sandbox.Spec){
		"missing source":   func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{missing} },
		"no mount point":   func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{inside} },
		"no agent server":  func(s *sandbox.Spec) { s.AgentServer = "/nonexistent" },
		"not a program":    func(s *sandbox.Spec) { s.AgentServer = "/etc/passwd" },
		"server dies":      func(s *sandbox.Spec) { s.AgentServer = "/bin/true" },
		"root as agent":    func(s *sandbox.Spec) { s.AgentUID = 0 },
		"boot is no JSON":  func(s *sandbox.Spec) { s.Boot = []byte("{") },
		"unknown mount":    func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Kind: "x", Source: "/usr", Target: "/a"}} },
		"relative targets": func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Kind: "bind", Source: "/usr", Target: "a"}} },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			spec, _ := newSpec(t, root, "r1")
			change(&spec)
			if s, err := New(Options{Root: root}).Create(t.Context(), spec); err == nil {
				_ = s.Destroy(t.Context())
				t.Fatal("made a sandbox")
			}
			if left := must(os.ReadDir(spec.Dir)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			// A mount point was once made in the host's own /usr.
			if _, err := os.Stat("/usr/nowhere"); err == nil {
				t.Fatal("a directory was made on the host")
			}
		})
	}
}

func TestSandboxCreateStopsWithItsContext(t *testing.T) {
	needNamespaces(t)
	root := t.TempDir()
	spec, _ := newSpec(t, root, "r1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := New(Options{Root: root}).Create(ctx, spec)
	if errs.KindOf(err) != errs.Canceled {
		t.Errorf("got %v", err)
	}
	if left := must(os.ReadDir(spec.Dir)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A record without a process is what a creator leaves that was killed between
// writing it and making PID 1.
func TestRecordWithoutProcessIsCleaned(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "r1")
	if err := os.MkdirAll(filepath.Join(dir, linkName), 0o700); err != nil {
		t.Fatal(err)
	}
	r := record{V: recordVersion, Labels: map[string]string{sandbox.LabelRun: "r1"}, BootID: bootID()}
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Root: root}).Open(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := must(os.ReadDir(dir)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A process that has the number of PID 1 of a former time is not ours to kill.
func TestRecordOfAnotherTimeKillsNobody(t *testing.T) {
	root := t.TempDir()
	victim := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	start := must(startTime(victim.Process.Pid))
	for name, r := range map[string]record{
		"start": {PID: victim.Process.Pid, Start: start + 1, BootID: bootID()},
		"boot":  {PID: victim.Process.Pid, Start: start, BootID: "another"},
	} {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r.Labels = map[string]string{sandbox.LabelRun: name}
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Root: root}).Open(t.Context(), sandbox.ID(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := findProcess(record{PID: victim.Process.Pid, Start: start, BootID: bootID()}); err != nil || p == nil || p.ended() {
		t.Error("the process was killed")
	}
}

func TestSandboxWorksInALongDirectory(t *testing.T) {
	needNamespaces(t)
	root := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	spec, key := newSpec(t, root, "r1")
	b := &box{provider: New(Options{Root: root}), spec: spec, key: key}
	s, err := b.provider.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Destroy(context.WithoutCancel(t.Context())) }()
	b.connect(t, s)
	b.sh(t, "true")
}

func TestSandboxTwentyAtOnce(t *testing.T) {
	needNamespaces(t)
	root := t.TempDir()
	p := New(Options{Root: root})
	var all sync.WaitGroup
	for i := range 20 {
		spec, key := newSpec(t, root, "r"+strconv.Itoa(i))
		all.Go(func() {
			if err := once(t, p, spec, key); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	if infos := must(p.List(t.Context(), nil)); len(infos) > 0 {
		t.Errorf("left: %+v", infos)
	}
}

func once(t *testing.T, p *Provider, spec sandbox.Spec, key link.HostKey) error {
	s, err := p.Create(t.Context(), spec)
	if err != nil {
		return err
	}
	conn, err := s.Link(t.Context())
	if err == nil {
		err = link.HostHandshake(t.Context(), conn, key)
		_ = conn.Close()
	}
	return errors.Join(err, s.Destroy(t.Context()))
}
