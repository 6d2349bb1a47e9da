package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/config"
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
			known := filepath.Join(t.process.dir, "cache", "runtimes", r.Key+"-"+build.Get().Version)
			err = t.process.trials.try(ctx, known, func(ctx context.Context) error { return t.capture(ctx, r, spec) })
		}
		if err != nil {
			return nil, err
		}
	}
	return t.Provider.Create(ctx, spec)
}

// capture tries whether a restricted network works with a runtime.
func (t *tried) capture(ctx context.Context, r docker.Runtime, spec sandbox.Spec) error {
	p := t.process
	err := selftest.Capture(ctx, selftest.Options{
		Provider: t.Provider, Name: config.ProviderDocker, Foreign: true, Image: spec.Image, Runtime: spec.Runtime,
		AgentServer: spec.AgentServer, UID: spec.AgentUID, GID: spec.AgentGID,
		Dir: filepath.Join(p.dir, "run"), Owner: p.owner.Label(), State: p.db.ID,
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, image.ErrMissing), errors.Is(err, image.ErrStale), errs.KindOf(err) == errs.Unavailable:
		return err // says nothing about the runtime
	}
	return &unfit{errs.New("cli.runtime", errs.Config, "use --network=full, or another --runtime",
		"the runtime %s cannot have the network level %s: %w", r.Name, spec.Network, err)}
}

// unfit is what a trial found out about a runtime.
type unfit struct{ error }

// Unwrap returns the reason.
func (u *unfit) Unwrap() error { return u.error }

// trials are what is known about foreign runtimes: what works on disk, what does not in
// this process only, since somebody may mend it.
type trials struct {
	mu     sync.Mutex // one trial at a time
	failed map[string]error
}

// try tries something once. That it works is remembered by the file known.
func (t *trials) try(ctx context.Context, known string, trial func(context.Context) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := os.Stat(known); err == nil {
		return nil
	}
	if err := t.failed[known]; err != nil {
		return err
	}
	err := trial(ctx)
	if err == nil {
		return remember(known)
	}
	var what *unfit
	if errors.As(err, &what) {
		if t.failed == nil {
			t.failed = map[string]error{}
		}
		t.failed[known] = err
	}
	return err
}

// remember makes an empty file.
func remember(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}
