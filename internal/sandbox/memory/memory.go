// Package memory is the provider of tests: a sandbox is the real agent server as
// goroutines of this process, reached over net.Pipe. Everything above the port works
// with it as with any other provider.
//
// It isolates nothing. Commands are ordinary processes of this machine with this
// process's own uid; paths of the workspace and of the agent's home are moved below
// Spec.Dir wherever they appear in a command, which is enough for what the runner
// and tests do and for nothing else. A process that leaves its group outlives the
// sandbox. Never offer it to users.
package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// Provider keeps its sandboxes in memory; they end with the process.
type Provider struct {
	drivers map[string]agentserver.NewDriver

	mu    sync.Mutex // guards boxes
	boxes map[sandbox.ID]*box
}

var _ sandbox.Provider = (*Provider)(nil)

// New returns a provider whose agent servers have the given drivers.
func New(drivers map[string]agentserver.NewDriver) *Provider {
	return &Provider{drivers: drivers, boxes: map[sandbox.ID]*box{}}
}

// Create implements [sandbox.Provider]. The id is the run's.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	id := sandbox.ID(spec.Labels[sandbox.LabelRun])
	var boot wire.Boot
	if err := json.Unmarshal(spec.Boot, &boot); err != nil || id == "" {
		return nil, errs.New("memory.Create", errs.Internal, "", "create sandbox: no boot or no label %s", sandbox.LabelRun)
	}
	if spec.Runtime != "" {
		return nil, errs.New("memory.Create", errs.Usage, "", "the provider memory has no OCI runtimes")
	}
	if old := p.find(id); old != nil {
		if err := old.Destroy(ctx); err != nil {
			return nil, fmt.Errorf("remove the older sandbox of the run: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("create sandbox: %w", context.Cause(ctx))
	}
	at, err := newPlace(spec)
	if err != nil {
		return nil, errs.New("memory.Create", errs.Internal, "", "create sandbox: %w", err)
	}
	boot.Home, boot.Dir = at.path(boot.Home), at.path(boot.Dir)
	boot.Ports = nil // this machine's, where they may be anybody's
	if err := at.makeDirs(boot.Home, boot.Dir); err != nil {
		return nil, errs.New("memory.Create", errs.Internal, "", "create sandbox: %w", errors.Join(err, at.remove()))
	}
	b := p.start(ctx, boot, spec, at)
	p.mu.Lock()
	p.boxes[id] = b
	p.mu.Unlock()
	return b, nil
}

// start starts the agent server of a sandbox, which outlives ctx.
func (p *Provider) start(ctx context.Context, boot wire.Boot, spec sandbox.Spec, at *place) *box {
	reaper := proc.NewReaper()
	starter := &starter{Starter: &proc.Plain{Reaper: reaper}, at: at}
	b := &box{
		provider: p, id: sandbox.ID(spec.Labels[sandbox.LabelRun]), created: time.Now(), labels: spec.Labels,
		place: at, starter: starter, listener: newListener(), ended: make(chan struct{}),
		server: agentserver.New(agentserver.Config{Boot: boot, Starter: starter, Drivers: p.drivers, Self: self(spec)}),
	}
	go func() {
		defer close(b.ended)
		b.err = b.server.Serve(context.WithoutCancel(ctx), b.listener)
		starter.kill()
		reaper.Close()
	}()
	return b
}

// self makes the real binary do the transfers, where there is one: then their paths
// are moved like those of any command.
func self(spec sandbox.Spec) []string {
	if spec.AgentServer == "" {
		return nil
	}
	return []string{spec.AgentServer}
}

// Open implements [sandbox.Provider].
func (p *Provider) Open(_ context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	if b := p.find(id); b != nil {
		return b, nil
	}
	return nil, errs.New("memory.Open", errs.NotFound, "", "sandbox %q: %w", id, sandbox.ErrNotFound)
}

// List implements [sandbox.Provider].
func (p *Provider) List(_ context.Context, labels map[string]string) ([]sandbox.Info, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var infos []sandbox.Info
	for _, b := range p.boxes {
		if b.carries(labels) {
			infos = append(infos, sandbox.Info{ID: b.id, Labels: b.labels, Created: b.created, Running: b.running()})
		}
	}
	return infos, nil
}

func (p *Provider) find(id sandbox.ID) *box {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boxes[id]
}

// forget drops b, unless its id is a newer sandbox's by now.
func (p *Provider) forget(b *box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes[b.id] == b {
		delete(p.boxes, b.id)
	}
}

// box is one sandbox.
type box struct {
	provider *Provider
	id       sandbox.ID
	labels   map[string]string
	created  time.Time
	place    *place
	starter  *starter
	listener *listener
	server   *agentserver.Server
	ended    chan struct{} // closed when the server has ended
	err      error         // of the server; set before ended is closed
}

var _ sandbox.Sandbox = (*box)(nil)

func (b *box) carries(labels map[string]string) bool {
	for k, v := range labels {
		if b.labels[k] != v {
			return false
		}
	}
	return true
}

func (b *box) running() bool {
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// ID implements [sandbox.Sandbox].
func (b *box) ID() sandbox.ID { return b.id }

// Link implements [sandbox.Sandbox].
func (b *box) Link(ctx context.Context) (net.Conn, error) {
	conn, err := b.listener.dial(ctx)
	if err != nil {
		return nil, errs.New("memory.Link", errs.Unavailable, "", "link to sandbox %s: %w", b.id, err)
	}
	return conn, nil
}

// Wait implements [sandbox.Sandbox].
func (b *box) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-b.ended:
	case <-ctx.Done():
		return sandbox.Exit{}, context.Cause(ctx)
	}
	if b.err != nil {
		return sandbox.Exit{Code: 1, Output: b.err.Error()}, nil
	}
	return sandbox.Exit{}, nil
}

// Destroy implements [sandbox.Sandbox].
func (b *box) Destroy(ctx context.Context) error {
	b.starter.kill()
	b.server.Kill()
	_ = b.listener.Close()
	if _, err := b.Wait(ctx); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", b.id, err)
	}
	if err := b.place.remove(); err != nil {
		return errs.New("memory.Destroy", errs.Incomplete, "", "destroy sandbox %s: %w", b.id, err)
	}
	b.provider.forget(b)
	return nil
}
