package docker

import (
	"context"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/Insights/insightscli/internal/sandbox"
)

// LeftoverKind is what a [Leftover] is.
type LeftoverKind string

// The kinds of leftovers.
const (
	LeftoverVolume  LeftoverKind = "volume"
	LeftoverNetwork LeftoverKind = "network"
)

// Leftover is something of ours on the engine that belongs to no container. The
// containers themselves are found by [Provider.List].
type Leftover struct {
	Kind LeftoverKind
	Name string
	Run  string // of a volume
}

// Leftovers returns the overlay volumes with the given labels whose run has no
// container any more, and the network if no container is on it.
func (p *Provider) Leftovers(ctx context.Context, labels map[string]string) ([]Leftover, error) {
	api, err := p.engine.connect(ctx)
	if err != nil {
		return nil, err
	}
	boxes, err := p.List(ctx, labels)
	if err != nil {
		return nil, err
	}
	alive := make(map[string]bool, len(boxes))
	for _, box := range boxes {
		alive[box.Labels[sandbox.LabelRun]] = true
	}
	volumes, err := api.VolumeList(ctx, volume.ListOptions{Filters: labelFilter(labels)})
	if err != nil {
		return nil, fmt.Errorf("list overlay volumes: %w", err)
	}
	var left []Leftover
	for _, v := range volumes.Volumes {
		if run := v.Labels[sandbox.LabelRun]; !alive[run] {
			left = append(left, Leftover{Kind: LeftoverVolume, Name: v.Name, Run: run})
		}
	}
	id, err := findBridge(ctx, api)
	if err != nil || id == "" {
		return left, err
	}
	users, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("network", id))})
	if err != nil {
		return nil, fmt.Errorf("list containers of network %s: %w", bridgeName, err)
	}
	if len(users) == 0 {
		left = append(left, Leftover{Kind: LeftoverNetwork, Name: id})
	}
	return left, nil
}

// Remove removes a leftover. One that is gone already is no error, and neither is a
// network that has come into use meanwhile.
func (p *Provider) Remove(ctx context.Context, l Leftover) error {
	if l.Kind == LeftoverVolume {
		return p.engine.removeVolume(ctx, l.Name)
	}
	api, err := p.engine.connect(ctx)
	if err != nil {
		return err
	}
	err = api.NetworkRemove(ctx, l.Name)
	if err == nil || cerrdefs.IsNotFound(err) || contains(err, "has active endpoints") {
		return nil
	}
	return fmt.Errorf("remove network %s: %w", l.Name, err)
}
