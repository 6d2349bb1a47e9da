package docker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
)

// removeBridge removes the network, unless something still uses it.
func removeBridge(t testing.TB, p *Provider) {
	t.Helper()
	api, err := p.engine.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range bridges(t, p) {
		if err := api.NetworkRemove(t.Context(), n.ID); err != nil {
			t.Logf("remove network: %v", err)
		}
	}
}

func bridges(t testing.TB, p *Provider) []network.Inspect {
	t.Helper()
	api, err := p.engine.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := api.NetworkList(t.Context(), network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelNetwork))})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestBridgeIsMadeOnce(t *testing.T) {
	p := realEngine(t, TransportAuto)
	removeBridge(t, p)
	const many = 20
	ids := make(chan string, many)
	for range many {
		go func() {
			own := New(p.engine.opts)
			defer func() { _ = own.Close() }()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			id, err := own.engine.bridge(ctx)
			if err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	first := <-ids
	for range many - 1 {
		if id := <-ids; id != first {
			t.Errorf("two networks: %s and %s", first, id)
		}
	}
	if n := len(bridges(t, p)); n != 1 {
		t.Errorf("there are %d networks", n)
	}
}

func TestFreeSubnetsAvoidThisMachine(t *testing.T) {
	list := freeSubnets()
	if len(list) == 0 {
		t.Fatal("no subnet")
	}
	for _, s := range list {
		if !strings.HasPrefix(s, "10.213.") || !strings.HasSuffix(s, "/20") {
			t.Errorf("subnet %q", s)
		}
	}
}

// A network that was removed after it was found is found or made again.
func TestNetworkRemovedMeanwhile(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkFull)
	pl, err := p.plan(t.Context(), r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	pl.network = strings.Repeat("0", 64)
	box, err := p.create(within(t, time.Minute), pl)
	if err != nil {
		t.Fatal(err)
	}
	destroy(t, box)
	nothingLeft(t, p, pl.run)
}
