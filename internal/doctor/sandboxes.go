package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
)

// sandboxes are the checks of what sandboxes are made of.
func (m *machine) sandboxes() []Check {
	return []Check{
		{Code: "engine", Elsewhere: true, Title: "The Docker engine", Severity: Error, Fix: "start Docker Desktop or the Docker daemon", Look: m.lookEngine},
		{Code: "image", Elsewhere: true, Title: "The image of sandboxes", Severity: Warning, Fix: "insightscli image build default_base", Look: m.lookImage},
		{Code: "namespaces", Title: "Namespaces for local sandboxes", Severity: Error, Fix: "insightscli run --provider=docker", Look: m.lookLocal},
		{Code: "cgroup", Title: "Limits of memory and processor", Severity: Warning, Fix: "use --provider=docker", Look: m.lookCgroup},
		{Code: "agent-server", Title: "The agent server", Severity: Error, Fix: "make build", Look: m.lookAgentServer},
		{Code: "disk", Title: "Disk space", Severity: Error, Fix: "insightscli prune --all; docker system prune", Look: m.lookDisk},
	}
}

// asks tells whether sandboxes are made by a provider here, without which a check
// does not concern this machine.
func (m *machine) asks(ctx context.Context, provider string) bool {
	name, err := m.provider(ctx)
	return err == nil && name == provider
}

func (m *machine) lookEngine(ctx context.Context) (Finding, error) {
	if name, err := m.Config.ChooseProvider(); err == nil && name != "" && name != config.ProviderDocker {
		return skipped("the provider is " + name)
	}
	endpoint, err := m.engine(ctx)
	switch {
	case err == nil:
		return ok(endpoint)
	case m.asks(ctx, config.ProviderLocal):
		return skipped("no engine answers; sandboxes are made by the provider local")
	}
	return Finding{}, err
}

func (m *machine) lookImage(ctx context.Context) (Finding, error) {
	if !m.asks(ctx, config.ProviderDocker) {
		return skipped("sandboxes are not made by Docker here")
	}
	if _, err := m.engine(ctx); err != nil {
		return skipped("the engine does not answer")
	}
	state, err := m.Image(ctx)
	switch {
	case err != nil:
		return Finding{}, err
	case state == "fresh":
		return ok(state)
	case m.Config.Run.Image != "":
		return Finding{
			State: Problem, Severity: Error, Text: "the image " + m.Config.Run.Image + " is " + state,
			Fix: "docker pull " + m.Config.Run.Image,
		}, nil
	}
	return problem("", "the image is", state+"; the next run builds it, which takes minutes")
}

func (m *machine) lookLocal(ctx context.Context) (Finding, error) {
	if !m.asks(ctx, config.ProviderLocal) {
		return skipped("sandboxes are not made by the provider local here")
	}
	if err := m.AgentServer(ctx); err != nil {
		return skipped("cannot be tried without an agent server")
	}
	if err := m.Local(ctx); err != nil {
		return Finding{}, err
	}
	return ok("usable")
}

// Where the limits of version 2 and of version 1 of cgroups are found.
const (
	cgroupV2 = "/sys/fs/cgroup/cgroup.controllers"
	cgroupV1 = "/sys/fs/cgroup/memory"
)

func (m *machine) lookCgroup(ctx context.Context) (Finding, error) {
	if runtime.GOOS != "linux" || !m.asks(ctx, config.ProviderLocal) {
		return skipped("the engine sets limits")
	}
	text, err := os.ReadFile(cgroupV2)
	if err != nil {
		if _, err := os.Stat(cgroupV1); err == nil {
			return ok("cgroup v1")
		}
		return problem("", "no cgroups are mounted at /sys/fs/cgroup, so limits do not hold")
	}
	for _, c := range []string{"memory", "cpu", "pids"} {
		if !slices.Contains(strings.Fields(string(text)), c) {
			return problem("", "the cgroup controller", c, "is not available, so its limit does not hold")
		}
	}
	return ok("cgroup v2")
}

func (m *machine) lookAgentServer(ctx context.Context) (Finding, error) {
	if err := m.AgentServer(ctx); err != nil {
		return Finding{}, err
	}
	return ok("there is one for " + runtime.GOARCH + "; what it said in a run: insightscli logs RUN --server-log")
}

// existing is the nearest of a path and its parents that is there.
func existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// Where little disk space is a problem: an image needs two gigabytes to build.
const (
	littleDisk = 5 << 30
	noDisk     = 1 << 30
)

func (m *machine) lookDisk(context.Context) (Finding, error) {
	dir := existing(m.State)
	free, known, err := freeSpace(dir)
	text := fmt.Sprintf("%.1f GiB free at %s", float64(free)/(1<<30), dir)
	switch {
	case err != nil:
		return Finding{}, err
	case !known:
		return skipped("cannot be told at " + dir)
	case free < noDisk:
		return problem("", "only", text)
	case free < littleDisk:
		return Finding{State: Problem, Severity: Warning, Text: "only " + text}, nil
	}
	return ok(text)
}
