package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"

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

// reposAtOnce is how many repositories are fetched and checked out at the same time.
const reposAtOnce = 4

// reposOf is the cache of repositories with the access that the run has.
func (s *Steps) reposOf(ctx context.Context, run task.ID) (*repo.Cache, error) {
	if s.ReposOf == nil {
		return s.Repos, nil
	}
	return s.ReposOf(ctx, run)
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
	cache, err := s.reposOf(ctx, t.Run)
	if err != nil {
		return WorkspaceOut{}, err
	}
	out := WorkspaceOut{Repos: make([]repo.Prepared, len(t.Repos))}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(reposAtOnce)
	for n, r := range t.Repos {
		group.Go(func() error {
			var err error
			out.Repos[n], err = cache.Prepare(gctx, r, repo.PrepareOptions{
				Run: t.Run, N: n, UID: t.AgentUID, GID: t.AgentGID,
				WorkDir: filepath.Join(work, strconv.Itoa(n)), Overlay: overlay, TrustMount: t.TrustMount,
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return WorkspaceOut{}, err
	}
	for _, prepared := range out.Repos {
		out.Mounts = append(out.Mounts, prepared.Mounts...)
	}
	return out, nil
}
