package selftest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/selftest"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// server builds the agent server.
func server(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "insights-agent-server")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../../cmd/insights-agent-server")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func options(t *testing.T, name string) selftest.Options {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	o := selftest.Options{
		Name: name, AgentServer: server(t), UID: os.Geteuid(), GID: os.Getegid(), Dir: dir, Owner: "host/boot/1/1", State: string(task.NewID()),
	}
	if o.UID == 0 {
		o.UID, o.GID = 1000, 1000
	}
	if name == config.ProviderLocal {
		p := local.New(local.Options{Root: dir})
		err := p.Probe(t.Context(), o.AgentServer)
		testenv.Need(t, fmt.Sprintf("local sandboxes (%v)", err), err == nil)
		o.Provider = p
		return o
	}
	o.Provider, o.Image = engine(t)
	return o
}

func engine(t *testing.T) (*docker.Provider, string) {
	t.Helper()
	p := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST")})
	t.Cleanup(func() { _ = p.Close() })
	testenv.Need(t, "a Docker engine (.ci/docker starts one)", p.Ping(t.Context()) == nil)
	b := image.Builder{Engine: p.Images(), Lock: filepath.Join(os.TempDir(), "insightscli-test-image.lock")}
	if _, err := b.Ensure(t.Context(), image.DefaultBase, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	return p, image.DefaultBase.Tag()
}

func eachProvider(t *testing.T, test func(t *testing.T, o selftest.Options)) {
	for _, name := range []string{config.ProviderLocal, config.ProviderDocker} {
		t.Run(name, func(t *testing.T) { test(t, options(t, name)) })
	}
}

// nothingLeft fails when there is a sandbox, or a directory of one.
func nothingLeft(t *testing.T, o selftest.Options) {
	t.Helper()
	found, err := o.Provider.List(context.WithoutCancel(t.Context()), map[string]string{sandbox.LabelState: o.State})
	if err != nil || len(found) > 0 {
		t.Errorf("left: %v, %v", found, err)
	}
	if dirs, err := os.ReadDir(o.Dir); err != nil || len(dirs) > 0 {
		t.Errorf("left: %v, %v", dirs, err)
	}
}

func TestWallsStand(t *testing.T) {
	eachProvider(t, func(t *testing.T, o selftest.Options) {
		reports, err := selftest.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]doctor.State{}
		for _, r := range reports {
			t.Logf("%-8s %-22s %s", r.State, r.Code, r.Finding)
			seen[r.Code] = r.State
			if r.State == doctor.Problem && r.Severity == doctor.Error {
				t.Errorf("%s: %s", r.Code, r.Finding)
			}
		}
		for _, code := range []string{
			"start", "capabilities", "seccomp", "docker-socket", "host-paths", "interfaces", "pid1", "tmp", "others", "metadata", "owner",
			"pids", "memory", "cpus", "git", "node", "npm", "python", "removed",
		} {
			if _, asked := seen["sandbox-"+code]; !asked {
				t.Errorf("nobody asked for %s", code)
			}
		}
		nothingLeft(t, o)
	})
}

// interrupting ends the test in the middle, as Ctrl-C does.
type interrupting struct {
	sandbox.Provider
	sandbox.Capturer
	made   atomic.Int32
	cancel context.CancelCauseFunc
}

var errCtrlC = errors.New("interrupted")

func (p *interrupting) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	box, err := p.Provider.Create(ctx, spec)
	if p.made.Add(1) == 2 {
		p.cancel(errCtrlC)
	}
	return box, err
}

func TestNothingIsLeftAfterAnInterrupt(t *testing.T) {
	eachProvider(t, func(t *testing.T, o selftest.Options) {
		ctx, cancel := context.WithCancelCause(t.Context())
		real := o.Provider
		o.Provider = &interrupting{Provider: real, Capturer: real.(sandbox.Capturer), cancel: cancel}
		began := time.Now()
		if _, err := selftest.Run(ctx, o); !errors.Is(err, errCtrlC) {
			t.Errorf("got %v", err)
		}
		if time.Since(began) > time.Minute {
			t.Errorf("it took %v", time.Since(began))
		}
		o.Provider = real
		nothingLeft(t, o)
	})
}

func TestSandboxThatCannotBeMade(t *testing.T) {
	o := options(t, config.ProviderLocal)
	o.AgentServer = filepath.Join(t.TempDir(), "none")
	reports, err := selftest.Run(t.Context(), o)
	if err != nil || len(reports) != 2 || reports[0].State != doctor.Problem || reports[1].State != doctor.OK {
		t.Errorf("%+v, %v", reports, err)
	}
	nothingLeft(t, o)
}

func TestCapture(t *testing.T) {
	eachProvider(t, func(t *testing.T, o selftest.Options) {
		if err := selftest.Capture(t.Context(), o); err != nil {
			t.Error(err)
		}
		nothingLeft(t, o)
	})
}

// TestForeignRuntime is about an engine that has gVisor (`.ci/docker runsc` adds it).
func TestForeignRuntime(t *testing.T) {
	o := options(t, config.ProviderDocker)
	o.Runtime = "runsc"
	r, err := o.Provider.(*docker.Provider).Runtime(t.Context(), o.Runtime)
	testenv.Need(t, "an engine with the runtime runsc", err == nil)
	if o.Foreign = r.Foreign; !o.Foreign {
		t.Error("runsc is taken for a runtime of the engine's own kernel")
	}
	if err := selftest.Capture(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	reports, err := selftest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		t.Logf("%-8s %-22s %s", r.State, r.Code, r.Finding)
		if r.State == doctor.Problem && r.Severity == doctor.Error {
			t.Errorf("%s: %s", r.Code, r.Finding)
		}
	}
	nothingLeft(t, o)
}
