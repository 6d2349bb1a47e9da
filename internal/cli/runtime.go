package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/selftest"
	"github.com/Insights/insightscli/internal/task"
)

// provider returns what makes the sandboxes of this process's runs. A runtime that brings a
// kernel of its own is tried before it makes one without a network.
func (p *process) provider(ctx context.Context, spec task.Spec) (sandbox.Provider, error) {
	box, err := p.providers.of(ctx, spec)
	if engine, is := box.(*docker.Provider); is && err == nil {
		return &tried{Provider: engine, process: p}, nil
	}
	return box, err
}

// tried is an engine whose foreign runtimes have been tried.
type tried struct {
	*docker.Provider
	process *process
}

// Create implements sandbox.Provider.
func (t *tried) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if t.Captures(spec.Network) {
		r, err := t.Runtime(ctx, spec.Runtime)
		if err == nil && r.Foreign {
			err = t.process.trials.try(ctx, t.process, t.Provider, r, spec)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.Provider.Create(ctx, spec)
}

// trials are what is known about foreign runtimes: what works on disk, what does not in
// this process only, since somebody may mend it.
type trials struct {
	mu     sync.Mutex // one trial at a time
	failed map[string]error
}

// try finds out, once, whether a restricted network works with a runtime.
func (t *trials) try(ctx context.Context, p *process, engine *docker.Provider, r docker.Runtime, spec sandbox.Spec) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := filepath.Join(p.dir, "cache", "runtimes", r.Key+"-"+build.Get().Version)
	if _, err := os.Stat(known); err == nil {
		return nil
	}
	if err := t.failed[r.Key]; err != nil {
		return err
	}
	err := selftest.Capture(ctx, selftest.Options{
		Provider: engine, Name: "docker", Foreign: true, Image: spec.Image, Runtime: spec.Runtime,
		AgentServer: spec.AgentServer, UID: spec.AgentUID, GID: spec.AgentGID,
		Dir: filepath.Join(p.dir, "run"), Owner: p.owner.Label(), State: p.db.ID,
	})
	switch {
	case err == nil:
		return remember(known)
	case ctx.Err() != nil, errors.Is(err, image.ErrMissing), errors.Is(err, image.ErrStale), errs.KindOf(err) == errs.Unavailable:
		return err // says nothing about the runtime
	}
	err = errs.New("cli.runtime", errs.Config, "use --network=full, or another --runtime",
		"the runtime %s cannot have the network level %s: %w", r.Name, spec.Network, err)
	if t.failed == nil {
		t.failed = map[string]error{}
	}
	t.failed[r.Key] = err
	return err
}

// remember makes an empty file.
func remember(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}
