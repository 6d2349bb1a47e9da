package docker

import (
	"context"
	_ "embed" // the seccomp profile
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sync/errgroup"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

//go:generate go run ./seccompgen seccomp.json

//go:embed seccomp.json
var seccompProfile string

// Labels beside those of the port.
const (
	labelAgent = "insightscli.agent" // "uid:gid" of the agent, for the link of a re-opened sandbox
	labelImage = "insightscli.image" // on a volume: the image of its container
)

// Defaults of limits that a spec leaves open. The first two are lowered to what the
// engine has.
const (
	defaultCPUs      = 4
	defaultMemoryMiB = 16 << 10
	defaultPIDs      = 4096
)

// seccompName is the profile's file in the run's directory, for podman.
const seccompName = "seccomp.json"

// plan is everything that is decided before anything is made.
type plan struct {
	spec    sandbox.Spec
	facts   facts
	run     string
	agent   string // "uid:gid"
	boot    []byte
	network string // "none", or the id of the bridge
	linkDir string
	socket  bool // the link is a socket in linkDir, else an exec
}

// plan asks the engine what it has to know, all at the same time.
func (p *Provider) plan(ctx context.Context, spec sandbox.Spec) (*plan, error) {
	if _, err := p.engine.connect(ctx); err != nil {
		return nil, err
	}
	pl := &plan{
		spec: spec, run: spec.Labels[sandbox.LabelRun], boot: spec.Boot,
		network: "none", linkDir: filepath.Join(spec.Dir, "link"),
	}
	var img image.Info
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		pl.facts, err = p.engine.facts(gctx)
		return err
	})
	group.Go(func() (err error) {
		img, err = p.Images().Inspect(gctx, spec.Image)
		return err
	})
	if spec.Network == networkFull {
		group.Go(func() (err error) {
			pl.network, err = p.engine.bridge(gctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, explainImage(spec.Image, err)
	}
	if err := checkImage(spec.Image, img, pl.facts.platform); err != nil {
		return nil, err
	}
	if err := pl.facts.checkRuntime(p.engine.ep, spec.Runtime); err != nil {
		return nil, err
	}
	if err := p.checkPaths(pl); err != nil {
		return nil, err
	}
	pl.socket = p.engine.opts.Transport == TransportSocket ||
		p.engine.opts.Transport == TransportAuto && pl.facts.local && !pl.facts.remapped && pl.facts.shares(spec.Runtime)
	return pl, pl.setAgent()
}

// explainImage gives a missing image its hint.
func explainImage(ref string, err error) error {
	if cerrdefs.IsInvalidArgument(err) {
		return errs.New("docker.Create", errs.Config, "name it as NAME, NAME:TAG or NAME@DIGEST, in lower case", "%q is not the name of an image", ref)
	}
	if !errors.Is(err, image.ErrMissing) {
		return err
	}
	hint := "get it with `docker pull " + ref + "`"
	if t, ok := image.ForTag(ref); ok {
		hint = "build it with `" + t.Command() + "`"
	}
	return errs.New("docker.Create", errs.NotFound, hint, "image %q: %w", ref, image.ErrMissing)
}

func checkImage(ref string, img image.Info, platform string) error {
	if img.Platform != platform {
		return errs.New("docker.Create", errs.Config, "use an image for "+platform,
			"image %q is for %s, and the engine runs %s", ref, img.Platform, platform)
	}
	if !image.Stale(ref, img.Labels) {
		return nil
	}
	t, _ := image.ForTag(ref)
	return errs.New("docker.Create", errs.Conflict, "build it again with `"+t.Command()+"`",
		"image %q was built by another version: %w", ref, image.ErrStale)
}

// checkPaths refuses mounts that the engine cannot serve with the right owner.
func (p *Provider) checkPaths(pl *plan) error {
	for _, m := range pl.spec.Mounts {
		var why string
		switch {
		case p.engine.ep.remote():
			why = "the engine is on another machine"
		case m.Kind == sandbox.MountOverlay && (!pl.facts.local || pl.facts.rootless || pl.facts.remapped):
			why = "the engine cannot overlay a directory of this machine"
		case pl.facts.remapped && !m.ReadOnly:
			why = "the engine remaps users (userns-remap), so that results would belong to another user"
		default:
			continue
		}
		return errs.New("docker.Create", errs.Config, "use an engine on this machine, or --provider=local",
			"%s cannot be mounted on docker at %s: %s", m.Source, p.engine.ep, why)
	}
	return nil
}

// setAgent decides the agent's ids inside. On a rootless engine container uid 0 is
// the user who runs it: only files of that uid belong to the user outside.
func (pl *plan) setAgent() error {
	if pl.facts.rootless {
		pl.spec.AgentUID, pl.spec.AgentGID = 0, 0
		var boot wire.Boot
		if err := json.Unmarshal(pl.boot, &boot); err != nil {
			return fmt.Errorf("boot of the sandbox: %w", err)
		}
		boot.UID, boot.GID = 0, 0
		var err error
		if pl.boot, err = json.Marshal(boot); err != nil {
			return fmt.Errorf("boot of the sandbox: %w", err)
		}
	}
	pl.agent = fmt.Sprintf("%d:%d", pl.spec.AgentUID, pl.spec.AgentGID)
	return nil
}

func (pl *plan) volumeLabels() map[string]string {
	labels := maps.Clone(pl.spec.Labels)
	labels[labelImage] = pl.spec.Image
	return labels
}

// containerName is made from the run alone: the engine lets one container have it.
func containerName(run string) string { return "insightscli-" + run }

func (pl *plan) config() *container.Config {
	labels := maps.Clone(pl.spec.Labels)
	labels[labelAgent] = pl.agent
	return &container.Config{
		Hostname:   hostname(pl.spec.Name),
		User:       "0:0", // PID 1's set-up; it drops what it does not need
		Image:      pl.spec.Image,
		WorkingDir: "/",
		Entrypoint: []string{wire.ServerPath, "serve"},
		Labels:     labels,
		StopSignal: "SIGTERM",
		// An image's own check would run with all the container's capabilities.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
}

func (pl *plan) hostConfig() *container.HostConfig {
	security := []string{"no-new-privileges"}
	if profile := pl.seccomp(); profile != "" {
		security = append(security, "seccomp="+profile)
	}
	if pl.facts.selinux {
		// Without relabelling the user's own directories they cannot be read inside.
		security = append(security, "label=disable")
	}
	noInit := false
	pids := pl.spec.PIDs
	if pids == 0 {
		pids = defaultPIDs
	}
	memory := pl.memory()
	hc := &container.HostConfig{
		NetworkMode: container.NetworkMode(pl.network),
		CapDrop:     []string{"ALL"},
		CapAdd:      []string{"CHOWN", "KILL", "NET_ADMIN", "SETGID", "SETPCAP", "SETUID"},
		SecurityOpt: security,
		Sysctls:     pl.sysctls(),
		Mounts:      pl.mounts(),
		Runtime:     pl.spec.Runtime,
		Init:        &noInit,
		LogConfig:   container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "1"}},
		Resources: container.Resources{
			NanoCPUs: pl.nanoCPUs(), Memory: memory, MemorySwap: memory, PidsLimit: &pids,
		},
	}
	if pl.spec.Network == networkFull {
		hc.ExtraHosts = []string{"host.docker.internal:host-gateway"}
	}
	return hc
}

// seccomp returns the profile as the engine takes it: as JSON, and podman as a path on
// its own machine. One elsewhere has to do with its default.
func (pl *plan) seccomp() string {
	switch {
	case !pl.facts.podman:
		return seccompProfile
	case pl.facts.local:
		return filepath.Join(pl.spec.Dir, seccompName)
	}
	return ""
}

// sysctls turns IPv6 on for loopback alone, which engines turn off with the rest on
// networks without it, and lets the agent, who has no capability, serve low ports.
func (pl *plan) sysctls() map[string]string {
	s := map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	if !pl.facts.local || hasIPv6() {
		s["net.ipv6.conf.lo.disable_ipv6"] = "0"
	}
	return s
}

func (pl *plan) nanoCPUs() int64 {
	cpus := pl.spec.CPUs
	if cpus == 0 {
		cpus = defaultCPUs
		if pl.facts.cpus > 0 {
			cpus = min(cpus, float64(pl.facts.cpus))
		}
	}
	return int64(cpus * 1e9)
}

func (pl *plan) memory() int64 {
	if pl.spec.MemoryMiB != 0 {
		return pl.spec.MemoryMiB << 20
	}
	memory := int64(defaultMemoryMiB) << 20
	if pl.facts.memory > 0 {
		memory = min(memory, pl.facts.memory)
	}
	return memory
}

func (pl *plan) mounts() []mount.Mount {
	var list []mount.Mount
	if pl.socket {
		list = append(list,
			mount.Mount{Type: mount.TypeBind, Source: pl.linkDir, Target: wire.LinkDir},
			mount.Mount{Type: mount.TypeBind, Source: pl.spec.AgentServer, Target: wire.ServerPath, ReadOnly: true})
	}
	for i, m := range pl.spec.Mounts {
		if m.Kind == sandbox.MountOverlay {
			list = append(list, mount.Mount{
				Type: mount.TypeVolume, Source: overlayName(pl.run, i), Target: m.Target, ReadOnly: m.ReadOnly,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true},
			})
			continue
		}
		list = append(list, mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return list
}

// hostname makes a name that a host may have of one for people.
func hostname(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	clean = strings.Trim(clean, "-")
	if len(clean) > 63 {
		clean = strings.Trim(clean[:63], "-")
	}
	return clean
}
