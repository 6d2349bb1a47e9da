package cli

import (
	"context"
	"sync"

	"github.com/Insights/insightscli/internal/gateway/git"
	"github.com/Insights/insightscli/internal/gitguard"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// upstreams serves the repositories of one run from the host's mirrors.
type upstreams struct {
	services *services
	run      task.ID
	all      []repo.Upstream

	mu    sync.Mutex
	cache *repo.Cache // with the run's access; made when it is first asked for
}

// gitGateway is what the git of a run's sandbox fetches from.
func (v *services) gitGateway(run task.ID, all []repo.Upstream) *git.Gateway {
	u := &upstreams{services: v, run: run, all: all}
	c := git.Config{Refusal: gitguard.Refusal, Refs: u.refs, Objects: u.objects, Upload: u.upload}
	for _, one := range all {
		c.Repos = append(c.Repos, git.Repo{Path: one.Repo.Org + "/" + one.Repo.Name, Web: one.Web})
	}
	return git.New(c)
}

func (u *upstreams) repos(ctx context.Context) (*repo.Cache, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cache != nil {
		return u.cache, nil
	}
	c, err := u.services.reposFor(ctx, u.run, u.services.secrets, func(text string) { u.services.notify(u.run, "info", text) })
	if err == nil {
		u.cache = c
	}
	return c, err
}

func (u *upstreams) refs(ctx context.Context, n int, prefixes []string) error {
	c, err := u.repos(ctx)
	if err != nil {
		return err
	}
	return c.RefreshRefs(ctx, u.all[n].Repo, prefixes)
}

func (u *upstreams) objects(ctx context.Context, n int, want git.Wanted) error {
	c, err := u.repos(ctx)
	if err != nil {
		return err
	}
	return c.RefreshObjects(ctx, u.all[n].Repo, repo.Wanted(want))
}

func (u *upstreams) upload(ctx context.Context, n int, x git.Exchange) error {
	c, err := u.repos(ctx)
	if err != nil {
		return err
	}
	return c.UploadPack(ctx, u.all[n].Repo, repo.Exchange(x))
}
