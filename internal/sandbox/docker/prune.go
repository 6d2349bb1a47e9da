package docker

import (
	"context"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// The kinds of [Leftover].
const (
	LeftoverVolume  = "volume"
	LeftoverNetwork = "network"
)

// Leftover is something beside sandboxes that we made on the engine and that may
// have outlived its use.
type Leftover struct {
	Kind  string
	ID    string
	Run   string       // of a volume
	Users []sandbox.ID // of the network: the containers in it, running or not
}

// Leftovers returns the overlay volumes with the given labels, and our network. It
// does not say that they are unused.
func (p *Provider) Leftovers(ctx context.Context, labels map[string]string) ([]Leftover, error) {
	names, err := p.engine.overlays(ctx, labels)
	if err != nil {
		return nil, err
	}
	api, err := p.engine.connect(ctx)
	if err != nil {
		return nil, err
	}
	var all []Leftover
	for _, name := range names {
		v, err := api.VolumeInspect(ctx, name)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("inspect volume %s: %w", name, err)
		}
		all = append(all, Leftover{Kind: LeftoverVolume, ID: name, Run: v.Labels[sandbox.LabelRun]})
	}
	id, err := findBridge(ctx, api)
	if err != nil || id == "" {
		return all, nil //nolint:nilerr // a network of that name that is not ours is none of our business
	}
	users, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("network", id))})
	if err != nil {
		return nil, fmt.Errorf("list the containers of network %s: %w", bridgeName, err)
	}
	left := Leftover{Kind: LeftoverNetwork, ID: id}
	for _, c := range users {
		left.Users = append(left.Users, sandbox.ID(c.ID))
	}
	return append(all, left), nil
}

// RemoveLeftover removes one of what Leftovers returned. The engine refuses to
// remove what is in use.
func (p *Provider) RemoveLeftover(ctx context.Context, l Leftover) error {
	if l.Kind == LeftoverVolume {
		return p.engine.removeVolume(ctx, l.ID)
	}
	api, err := p.engine.connect(ctx)
	if err != nil {
		return err
	}
	if err := api.NetworkRemove(ctx, l.ID); err != nil && !cerrdefs.IsNotFound(err) {
		return errs.New("docker.RemoveLeftover", errs.Incomplete, "run `insightscli prune` later",
			"remove network %s: %w", bridgeName, err)
	}
	return nil
}
