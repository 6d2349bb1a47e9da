package docker

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/Insights/insightscli/internal/sandbox"
)

// maxInfo bounds what podman says about itself.
const maxInfo = 4 << 20

// podmanRootless asks podman whether it is a user's own. Older versions say so in a field
// that engines of Docker do not have, and nowhere else.
func podmanRootless(ctx context.Context, api *client.Client) bool {
	dial := api.Dialer()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podman/v"+api.ClientVersion()+"/info", http.NoBody)
	if err != nil {
		return false
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	var info struct{ Rootless bool }
	return json.NewDecoder(io.LimitReader(res.Body, maxInfo)).Decode(&info) == nil && info.Rootless
}

// readLimits finds the limits that the engine takes and does not hold. A user's own engine
// has no cgroups of version 1, whatever it says, and of version 2 only those of its session.
func (f *facts) readLimits(info system.Info) {
	none := f.rootless && (info.CgroupVersion == "1" || info.CgroupDriver == "none")
	f.noMemory, f.noCPUs, f.noPIDs = none || !info.MemoryLimit, none || !info.CPUCfsQuota, none || !info.PidsLimit
}

var _ sandbox.Limiter = (*Sandbox)(nil)

// Unheld implements [sandbox.Limiter].
func (s *Sandbox) Unheld() []sandbox.Limit { return s.unheld }

// unheld returns the limits that the Spec asks for and that nothing holds.
func (pl *plan) unheld() []sandbox.Limit {
	var list []sandbox.Limit
	if pl.spec.MemoryMiB > 0 && pl.facts.noMemory {
		list = append(list, sandbox.LimitMemory)
	}
	if pl.spec.CPUs > 0 && pl.facts.noCPUs {
		list = append(list, sandbox.LimitCPUs)
	}
	if pl.spec.PIDs > 0 && pl.facts.noPIDs {
		list = append(list, sandbox.LimitPIDs)
	}
	return list
}
