package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// DestroyIn names what is to go.
type DestroyIn struct {
	Spec    task.Spec  `json:"spec"`
	Domain  string     `json:"domain"`            // sandbox.LabelState of the run's sandboxes
	Sandbox sandbox.ID `json:"sandbox,omitempty"` // empty: found by label
}

// DestroyOut is empty: what could not be removed is an error.
type DestroyOut struct{}

// Destroy removes everything a run holds on this machine but its records: every
// sandbox that carries its label, its directory, its token and its hold on cached
// checkouts. What is gone already is fine. box is the sandbox if the caller holds
// it: then it goes even if nothing on disk tells of it any more.
func (s *Steps) Destroy(ctx context.Context, in DestroyIn, box sandbox.Sandbox) (DestroyOut, error) {
	var all []error
	if err := s.destroySandboxes(ctx, in, box); err != nil {
		all = append(all, err)
	} else if err := repo.RemoveAll(s.RunDir(in.Spec.Run)); err != nil {
		// Not before the sandbox is gone: it writes there.
		all = append(all, fmt.Errorf("remove the run's directory: %w", err))
	}
	if err := s.Tokens.Revoke(ctx, in.Spec.Run); err != nil {
		all = append(all, fmt.Errorf("revoke the run's token: %w", err))
	}
	if err := s.Repos.Release(ctx, in.Spec.Run); err != nil {
		all = append(all, err)
	}
	return DestroyOut{}, errors.Join(all...)
}

func (s *Steps) destroySandboxes(ctx context.Context, in DestroyIn, box sandbox.Sandbox) error {
	if box != nil {
		if err := box.Destroy(ctx); err != nil {
			return fmt.Errorf("remove sandbox %s: %w", box.ID(), err)
		}
		return nil
	}
	p, err := s.Provider(ctx, in.Spec)
	if err != nil {
		return fmt.Errorf("remove sandbox: %w", err)
	}
	ids := []sandbox.ID{in.Sandbox}
	if in.Sandbox == "" {
		found, err := p.List(ctx, map[string]string{sandbox.LabelRun: string(in.Spec.Run), sandbox.LabelState: in.Domain})
		if err != nil {
			return fmt.Errorf("find sandbox: %w", err)
		}
		ids = ids[:0]
		for _, f := range found {
			ids = append(ids, f.ID)
		}
	}
	for _, id := range ids {
		box, err := p.Open(ctx, id)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue
		}
		if err == nil {
			err = box.Destroy(ctx)
		}
		if err != nil {
			return fmt.Errorf("remove sandbox %s: %w", id, err)
		}
	}
	return nil
}
