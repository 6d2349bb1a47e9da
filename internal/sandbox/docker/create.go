package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// Network levels, as package task names them. The level full has the bridge; a container
// of any other has no network, and PID 1 captures what its programs dial.
const (
	networkFull    = "full"
	networkTrusted = "trusted"
	networkCustom  = "custom"
	networkLink    = "link"
)

// createTries bounds how often leftovers of the same run are removed.
const createTries = 3

// Create implements [sandbox.Provider]. An image that is missing or out of date is
// an error that wraps [image.ErrMissing] or [image.ErrStale]: the caller may build
// it and try again.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := check(spec); err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	plan, err := p.plan(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	box, err := p.create(ctx, plan)
	if err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	return box, nil
}

// create tries, and tries once more where the engine turns out to be otherwise than
// it was a moment ago, or than it looked.
func (p *Provider) create(ctx context.Context, pl *plan) (*Sandbox, error) {
	box, err := p.try(ctx, pl)
	switch {
	case err == nil:
		return box, nil
	case noBindSource(err) && pl.socket && p.engine.opts.Transport == TransportAuto:
		// The engine has another file system after all: a snap, or the host of the
		// container that this process runs in.
		pl.socket = false
	case networkGone(err) && pl.spec.Network == networkFull:
		// `docker network prune` came between.
		if pl.network, err = p.engine.bridge(ctx); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return p.try(ctx, pl)
}

// check looks at what the engine would not, or would say in other words.
func check(spec sandbox.Spec) error {
	if spec.Labels[sandbox.LabelRun] == "" {
		return errs.New("docker.Create", errs.Internal, "", "the spec has no label %s", sandbox.LabelRun)
	}
	switch spec.Network {
	case networkFull, networkTrusted, networkCustom, networkLink:
	default:
		return errs.New("docker.Create", errs.Usage, "use full, trusted, custom or link",
			"the docker provider has no network level %q", spec.Network)
	}
	if info, err := os.Stat(spec.AgentServer); err != nil || !info.Mode().IsRegular() {
		return errs.New("docker.Create", errs.Internal, "build it with `make build`",
			"the agent server %q is missing", spec.AgentServer)
	}
	for _, m := range spec.Mounts {
		if err := checkMount(m); err != nil {
			return err
		}
	}
	return nil
}

// checkMount refuses a source that is not there. An engine would make it, as an
// empty directory of root.
func checkMount(m sandbox.Mount) error {
	if !path.IsAbs(m.Target) || path.Clean(m.Target) != m.Target || m.Target == "/" {
		return errs.New("docker.Create", errs.Usage, "use an absolute path", "mount target %q is not valid", m.Target)
	}
	sources := []string{m.Source}
	if m.Kind == sandbox.MountOverlay {
		sources = append(sources, m.Upper, m.Work)
	}
	for _, source := range sources {
		if !filepath.IsAbs(source) {
			return errs.New("docker.Create", errs.Usage, "use an absolute path", "mount source %q is not absolute", source)
		}
		if _, err := os.Stat(source); err != nil {
			return errs.New("docker.Create", errs.Usage, "check the path of the mount",
				"mount source %q for %s does not exist: %w", source, m.Target, cause(err))
		}
	}
	return nil
}

// try makes and starts one container. When that fails, nothing of it is left.
func (p *Provider) try(ctx context.Context, pl *plan) (_ *Sandbox, err error) {
	defer func() {
		if err == nil {
			return
		}
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if cleanErr := p.removeRun(clean, pl.run); cleanErr != nil {
			err = fmt.Errorf("%w (and %w)", err, cleanErr)
		}
		removeBoot(pl.linkDir)
	}()
	if pl.socket {
		if err := writeBoot(pl.linkDir, pl.boot); err != nil {
			return nil, err
		}
	}
	if pl.facts.podman && pl.facts.local {
		if err := os.WriteFile(filepath.Join(pl.spec.Dir, seccompName), []byte(seccompProfile), 0o600); err != nil {
			return nil, fmt.Errorf("write seccomp profile: %w", err)
		}
	}
	id, volumes, err := p.make(ctx, pl)
	if err != nil {
		return nil, err
	}
	box := &Sandbox{
		engine: p.engine, id: id, run: pl.run, image: pl.spec.Image,
		agent: pl.agent, volumes: volumes, unheld: pl.unheld(),
	}
	if pl.socket {
		box.linkDir = pl.linkDir
	} else if err := p.engine.copyIn(ctx, id, pl); err != nil {
		return nil, err
	}
	if err := p.start(ctx, id); err != nil {
		return nil, err
	}
	return box, nil
}

// make creates the overlay volumes and the container. What is left of an earlier
// try of the same run is in the way by its name; it is removed by label.
func (p *Provider) make(ctx context.Context, pl *plan) (sandbox.ID, []string, error) {
	var err error
	for range createTries {
		var volumes []string
		if volumes, err = p.volumes(ctx, pl); err != nil {
			return "", nil, explain(p.engine.ep, "create volume", err)
		}
		var id sandbox.ID
		id, err = p.engine.createContainer(ctx, pl)
		if err == nil {
			return id, volumes, nil
		}
		if !nameTaken(err) {
			return "", nil, explain(p.engine.ep, "create container", err)
		}
		if err := p.removeRun(ctx, pl.run); err != nil {
			return "", nil, err
		}
	}
	return "", nil, errs.New("docker.Create", errs.Conflict, "remove the container with `docker rm -f "+containerName(pl.run)+"`",
		"another program's container has the name of this run's: %w", err)
}

func (p *Provider) volumes(ctx context.Context, pl *plan) ([]string, error) {
	var names []string
	for i, m := range pl.spec.Mounts {
		if m.Kind != sandbox.MountOverlay {
			continue
		}
		name := overlayName(pl.run, i)
		if err := p.engine.createOverlay(ctx, name, m, pl.volumeLabels()); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// createGrace is how long a create that was cancelled may take to end by itself.
const createGrace = 5 * time.Second

// createContainer creates the container and returns when the engine has, or surely
// never will have, made it: an engine finishes a create whose client has gone, and
// a container that appears after the clean-up would be left.
func (e *engine) createContainer(ctx context.Context, pl *plan) (sandbox.ID, error) {
	api, err := e.connect(ctx)
	if err != nil {
		return "", err
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(createGrace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-work.Done():
		}
	})
	defer stop()
	made, err := api.ContainerCreate(work, pl.config(), pl.hostConfig(), nil, nil, containerName(pl.run))
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return sandbox.ID(made.ID), err
}

func (p *Provider) start(ctx context.Context, id sandbox.ID) error {
	api, err := p.engine.connect(ctx)
	if err != nil {
		return err
	}
	err = api.ContainerStart(ctx, string(id), container.StartOptions{})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(p.engine.ep, "start container", err)
}

// nameTaken recognises that there is a container of that name; podman calls it an
// internal error.
func nameTaken(err error) bool {
	return cerrdefs.IsConflict(err) || contains(err, "name is already in use")
}

// noBindSource recognises an engine that does not see a path of this machine.
func noBindSource(err error) bool {
	return contains(err, "bind source path does not exist", "statfs ")
}

// networkGone recognises that the network has been removed meanwhile.
func networkGone(err error) bool {
	return contains(err, "network") && contains(err, "not found")
}

// writeBoot puts boot.json where PID 1 reads it, and takes away what an earlier
// container of this run has left beside it. The directory may have been open to
// the agent of that container, so nothing that lies there is followed.
func writeBoot(dir string, boot []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("link directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("link directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{wire.BootName, wire.SocketName} {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("link directory: %w", err)
		}
	}
	f, err := root.OpenFile(wire.BootName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write boot file: %w", err)
	}
	_, err = f.Write(boot)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write boot file: %w", err)
	}
	return nil
}

// removeBoot takes away a boot file that PID 1 did not live to read.
func removeBoot(dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	_ = root.Remove(wire.BootName)
	_ = root.Close()
}
