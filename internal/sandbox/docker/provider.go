package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// Provider makes sandboxes on one engine. Its zero value is not usable; see [New].
type Provider struct {
	engine *engine
}

var (
	_ sandbox.Provider  = (*Provider)(nil)
	_ sandbox.Overlayer = (*Provider)(nil)
	_ sandbox.Capturer  = (*Provider)(nil)
)

// New returns a provider. It contacts no engine yet.
func New(o Options) *Provider { return &Provider{engine: newEngine(o)} }

// Ping reports whether an engine answers, within a second: enough to choose a
// provider, and an error that says what was asked and what would help.
func (p *Provider) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := p.engine.connect(ctx)
	return err
}

// Ready reports whether sandboxes can be made from the image ref: the engine answers,
// and an image that is not built here is there and for its platform.
func (p *Provider) Ready(ctx context.Context, ref string) error {
	if _, err := p.engine.connect(ctx); err != nil {
		return err
	}
	if _, built := image.ForTag(ref); built {
		return nil // it is built where it is missing
	}
	info, err := p.Images().Inspect(ctx, ref)
	if err != nil {
		return explainImage(ref, err)
	}
	platform, err := p.Images().Platform(ctx)
	if err != nil {
		return err
	}
	return checkImage(ref, info, platform)
}

// Close drops idle connections to the engine. Sandboxes stay.
func (p *Provider) Close() error {
	<-p.engine.turn
	api, warm := p.engine.api, p.engine.warm
	p.engine.api, p.engine.warm = nil, nil
	p.engine.unlock()
	if api == nil {
		return nil
	}
	warm()
	return api.Close()
}

// Endpoint names the engine and where its address was found, for people.
func (p *Provider) Endpoint(ctx context.Context) (string, error) {
	if _, err := p.engine.connect(ctx); err != nil {
		return "", err
	}
	return p.engine.ep.String(), nil
}

// Open implements [sandbox.Provider].
func (p *Provider) Open(ctx context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	api, err := p.engine.connect(ctx)
	if err != nil {
		return nil, err
	}
	if !containerID(string(id)) {
		return nil, fmt.Errorf("open sandbox %q: %w", short(id), sandbox.ErrNotFound)
	}
	c, err := api.ContainerInspect(ctx, string(id))
	if cerrdefs.IsNotFound(err) || err == nil && c.Config.Labels[sandbox.LabelRun] == "" {
		return nil, fmt.Errorf("open sandbox %s: %w", short(id), sandbox.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", short(id), err)
	}
	box := &Sandbox{engine: p.engine, id: sandbox.ID(c.ID), run: c.Config.Labels[sandbox.LabelRun], image: c.Config.Image}
	box.agent = c.Config.Labels[labelAgent]
	for _, m := range c.Mounts {
		switch {
		case m.Destination == wire.LinkDir:
			box.linkDir = m.Source
		case isOverlay(box.run, m.Name):
			box.volumes = append(box.volumes, m.Name)
		}
	}
	return box, nil
}

// List implements [sandbox.Provider].
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]sandbox.Info, error) {
	api, err := p.engine.connect(ctx)
	if err != nil {
		return nil, err
	}
	found, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: labelFilter(labels)})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	infos := make([]sandbox.Info, 0, len(found))
	for _, c := range found {
		if c.Labels[sandbox.LabelRun] == "" {
			continue
		}
		infos = append(infos, sandbox.Info{
			ID:      sandbox.ID(c.ID),
			Labels:  c.Labels,
			Created: time.Unix(c.Created, 0),
			Running: c.State == "running" || c.State == "paused",
		})
	}
	return infos, nil
}

// labelFilter selects what carries all the labels, and a run.
func labelFilter(labels map[string]string) filters.Args {
	f := filters.NewArgs(filters.Arg("label", sandbox.LabelRun))
	for k, v := range labels {
		f.Add("label", k+"="+v)
	}
	return f
}

// removeRun removes the containers and overlay volumes of a run, found by label.
func (p *Provider) removeRun(ctx context.Context, run string) error {
	found, err := p.List(ctx, map[string]string{sandbox.LabelRun: run})
	if err != nil {
		return err
	}
	var all []error
	for _, info := range found {
		all = append(all, p.engine.removeContainer(ctx, info.ID))
	}
	left, err := p.engine.overlays(ctx, map[string]string{sandbox.LabelRun: run})
	if err != nil {
		return errors.Join(append(all, err)...)
	}
	for _, name := range left {
		all = append(all, p.engine.removeVolume(ctx, name))
	}
	return errors.Join(all...)
}

// removeContainer ends and removes a container with its anonymous volumes, in one
// call. One that is gone, or that somebody else is removing, is waited for.
func (e *engine) removeContainer(ctx context.Context, id sandbox.ID) error {
	api, err := e.connect(ctx)
	if err != nil {
		return err
	}
	for {
		err := api.ContainerRemove(ctx, string(id), container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil, cerrdefs.IsNotFound(err):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !cerrdefs.IsConflict(err):
			return errs.New("docker.Destroy", errs.Incomplete, "run `insightscli prune` later",
				"remove container %s: %w", short(id), err)
		}
		if err := pause(ctx, busyPause); err != nil {
			return err
		}
	}
}

// busyPause is between two tries of a removal that another one has begun.
const busyPause = 50 * time.Millisecond

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// containerID reports whether s can be the id of a container. Anything else would
// be a name, or part of a path of the engine's interface.
func containerID(s string) bool {
	return len(s) >= 12 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// short is an id as people read it.
func short(id sandbox.ID) string {
	if len(id) > 12 {
		return string(id[:12])
	}
	return string(id)
}
