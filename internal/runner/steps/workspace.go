package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// WorkspaceIn asks for the repositories of a run.
type WorkspaceIn struct {
	Spec task.Spec `json:"spec"`
}

// WorkspaceOut is what the sandbox will show, and what is needed to take the
// changes out again.
type WorkspaceOut struct {
	Repos  []repo.Prepared `json:"repos"`
	Mounts []sandbox.Mount `json:"mounts"`
}

// Workspace prepares the repositories on the host, before the sandbox: a mount is
// made when a sandbox is made.
func (s *Steps) Workspace(ctx context.Context, in WorkspaceIn) (WorkspaceOut, error) {
	t := in.Spec
	p, err := s.Provider(ctx, t)
	if err != nil {
		return WorkspaceOut{}, err
	}
	work := filepath.Join(s.RunDir(t.Run), "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return WorkspaceOut{}, fmt.Errorf("make the run's directory: %w", err)
	}
	o, able := p.(sandbox.Overlayer)
	overlay := able && o.CanOverlay(ctx, work)
	var out WorkspaceOut
	for n, r := range t.Repos {
		prepared, err := s.Repos.Prepare(ctx, r, repo.PrepareOptions{
			Run: t.Run, N: n, UID: t.AgentUID, GID: t.AgentGID,
			WorkDir: filepath.Join(work, strconv.Itoa(n)), Overlay: overlay, TrustMount: t.TrustMount,
		})
		if err != nil {
			return WorkspaceOut{}, err
		}
		out.Repos = append(out.Repos, prepared)
		out.Mounts = append(out.Mounts, prepared.Mounts...)
	}
	return out, nil
}
