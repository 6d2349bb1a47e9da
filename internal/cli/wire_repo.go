package cli

import (
	"context"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// resolve looks up what a repository address names.
func (a *app) resolve(ctx context.Context, c config.Config, r task.Repo) (task.Repo, []string, error) {
	dir, err := c.StateDir()
	if err != nil {
		return r, nil, err
	}
	cache := repo.New(repo.Options{Dir: dir, Environ: a.process.Environ})
	found, err := cache.Resolve(ctx, r, repo.ResolveOptions{WorkDir: a.process.Dir, Home: c.Machine.Home})
	if err != nil {
		return r, nil, err
	}
	if r.Org != "" { // an entry of the mount map has said what it is
		found.Repo.Org, found.Repo.Name = r.Org, r.Name
	}
	return found.Repo, found.Notices, nil
}
