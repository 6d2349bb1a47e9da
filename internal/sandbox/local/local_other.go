//go:build !linux

package local

import (
	"context"
	"fmt"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

var (
	_ sandbox.Provider  = (*Provider)(nil)
	_ sandbox.Overlayer = (*Provider)(nil)
)

func needsLinux(op string) error {
	return errs.New(op, errs.Unavailable, "use --provider=docker", "local sandboxes need Linux")
}

// Create implements sandbox.Provider; local sandboxes need Linux.
func (p *Provider) Create(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, needsLinux("local.Create")
}

// Open implements sandbox.Provider; there is nothing to open.
func (p *Provider) Open(_ context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	return nil, errs.New("local.Open", errs.NotFound, "", "open sandbox: %w", fmt.Errorf("%w: %s", sandbox.ErrNotFound, id))
}

// List implements sandbox.Provider; there is nothing to list.
func (p *Provider) List(context.Context, map[string]string) ([]sandbox.Info, error) { return nil, nil }

// CanOverlay implements sandbox.Overlayer.
func (p *Provider) CanOverlay(context.Context, string) bool { return false }

// Probe says that local sandboxes need Linux.
func (p *Provider) Probe(context.Context, string) error { return needsLinux("local.Probe") }
