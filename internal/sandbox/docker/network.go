package docker

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

const (
	// bridgeName names the network and the host's interface. One interface of a
	// name can exist, so that of two creates at the same time one fails, also on
	// engines whose own check for duplicates has a gap.
	bridgeName = "insightscli"
	// labelNetwork marks a network as ours.
	labelNetwork = "insightscli.network"
	// optionICC turns traffic between the containers of a bridge off.
	optionICC = "com.docker.network.bridge.enable_icc"
	// networkTries bounds the waits for another process that makes the network.
	networkTries = 50
)

// Captures implements [sandbox.Capturer]: a container has a network at the level full only.
func (p *Provider) Captures(level sandbox.Network) bool { return level != networkFull }

// bridge returns the id of the network of the level full, and makes it when there
// is none. Any number of processes may do so at the same time.
func (e *engine) bridge(ctx context.Context) (string, error) {
	api, err := e.connect(ctx)
	if err != nil {
		return "", err
	}
	var last error
	for range networkTries {
		id, err := findBridge(ctx, api)
		if err != nil || id != "" {
			return id, err
		}
		if f, err := e.facts(ctx); err != nil || f.podman {
			return "", noICC(e.ep, err)
		}
		if last = e.makeBridge(ctx, api); last != nil && !taken(last) {
			return "", errs.New("docker.Network", errs.Unavailable,
				"free an address pool with `docker network prune`, or use --network=link",
				"create network %q: %w", bridgeName, last)
		}
		if last != nil {
			if err := pause(ctx, busyPause); err != nil {
				return "", err
			}
		}
	}
	return "", errs.New("docker.Network", errs.Conflict, "remove the network or interface "+bridgeName+" of another program",
		"create network %q: %w", bridgeName, last)
}

// noICC says why podman, which drops the option without a word, has no such network.
func noICC(ep endpoint, err error) error {
	if err != nil {
		return err
	}
	return errs.New("docker.Network", errs.Config, "use --network=link, or a Docker engine",
		"podman at %s cannot keep the sandboxes of one network apart", ep)
}

// findBridge returns the id of the oldest network of our name; a network of that
// name which is not ours, or lets containers talk to each other, is an error.
func findBridge(ctx context.Context, api *client.Client) (string, error) {
	found, err := api.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", bridgeName))})
	if err != nil {
		return "", fmt.Errorf("list networks: %w", err)
	}
	id, oldest := "", time.Time{}
	for _, n := range found {
		switch {
		case n.Name != bridgeName: // the filter matches parts of names
		case n.Labels[labelNetwork] == "" || n.Options[optionICC] != "false":
			return "", errs.New("docker.Network", errs.Conflict, "remove it with `docker network rm "+bridgeName+"`",
				"the network %q was made by another program", bridgeName)
		case id == "" || n.Created.Before(oldest):
			id, oldest = n.ID, n.Created
		}
	}
	return id, nil
}

// makeBridge creates the network, with a subnet of our own choice where the
// engine's pools are used up.
func (e *engine) makeBridge(ctx context.Context, api *client.Client) error {
	options := network.CreateOptions{
		Driver: "bridge",
		Labels: map[string]string{labelNetwork: bridgeName},
		Options: map[string]string{
			optionICC:                        "false",
			"com.docker.network.bridge.name": bridgeName,
		},
	}
	_, err := api.NetworkCreate(ctx, bridgeName, options)
	if err == nil || !poolsUsedUp(err) {
		return err
	}
	for _, subnet := range freeSubnets() {
		options.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
		if _, err = api.NetworkCreate(ctx, bridgeName, options); err == nil || !overlaps(err) {
			return err
		}
	}
	return err
}

// taken reports that another process has made, or is just making, the network.
func taken(err error) bool {
	return cerrdefs.IsConflict(err) || contains(err, "already exists", "bridge name", "networks have same bridge name")
}

func poolsUsedUp(err error) bool {
	return contains(err, "non-overlapping IPv4 address pool", "address pools have been fully subnetted", "could not find free subnet")
}

func overlaps(err error) bool { return contains(err, "overlap", "conflicts with network") }

func contains(err error, parts ...string) bool {
	text := strings.ToLower(err.Error())
	for _, part := range parts {
		if strings.Contains(text, strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// freeSubnets proposes private subnets that no interface of this machine is in. An
// engine checks a subnet that it is given against its own networks only.
func freeSubnets() []string {
	var used []*net.IPNet
	addrs, _ := net.InterfaceAddrs() // none known is no reason to give up
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			used = append(used, n)
		}
	}
	var free []string
	for i := range 16 {
		subnet := net.IPNet{IP: net.IPv4(10, 213, byte(16*i), 0), Mask: net.CIDRMask(20, 32)}
		if !overlapsAny(subnet, used) {
			free = append(free, subnet.String())
		}
	}
	return free
}

func overlapsAny(a net.IPNet, list []*net.IPNet) bool {
	for _, b := range list {
		if a.Contains(b.IP) || b.Contains(a.IP) {
			return true
		}
	}
	return false
}
