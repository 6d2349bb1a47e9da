package cli

import (
	"context"
	"sync"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/cifollow"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// freezeFollow decides whether the checks of the run's pull requests are followed.
func (o *runOptions) freezeFollow(_ context.Context, p *plan) error {
	r := p.config.Run
	_, given := o.settings["INSIGHTSCLI_FOLLOW_CI"]
	switch {
	case !r.FollowCI || !p.spec.Agent.Drives():
		return nil
	case !o.createPR && given:
		return usageError("--follow-ci needs --create-pr")
	case !o.createPR: // a default for those runs that have it
		return nil
	case r.FollowIdle < 0 || r.FollowPoll < 0:
		return errs.New("cli.run", errs.Config, "give a number of seconds", "TASKS_CI_FOLLOW_UP_IDLE_SECONDS and TASKS_CI_FOLLOW_UP_POLL_SECONDS cannot be negative")
	}
	p.spec.FollowCI = true
	p.spec.FollowIdle = task.Duration(time.Duration(r.FollowIdle) * time.Second)
	p.spec.FollowPoll = task.Duration(time.Duration(r.FollowPoll) * time.Second)
	githubKeysOf(p.config).seal(p.secrets)
	return nil
}

// followCI follows the pull requests of a run; see steps.Services.Follow.
func (v *services) followCI(spec task.Spec) func(context.Context, steps.Followed) error {
	if !spec.FollowCI {
		return nil
	}
	return func(ctx context.Context, run steps.Followed) error {
		keys, err := v.newCIKeys(ctx, spec)
		if err != nil {
			return err
		}
		w := cifollow.Watcher{
			GitHub: &cifollow.Reader{
				APIURL: apiURL(keys.github.url), Token: keys.token, Refused: keys.refused,
				Client: githubClient(v.config.Machine), Notify: func(text string) { v.notify(spec.Run, "info", text) },
			},
			Run: run, Idle: spec.FollowIdle.Std(), Poll: spec.FollowPoll.Std(),
		}
		return w.Watch(ctx)
	}
}

// ciKeys are what checks and reviews are read with: the App's tokens, narrowed to reading
// one repository, or else the user's own.
type ciKeys struct {
	services *services
	run      task.ID
	github   githubKeys
	cache    *repo.Cache
	app      *ghapp.Installations // nil without

	mu      sync.Mutex // guards the rest
	sources map[string]*ghapp.Source
	minted  map[string]string // the names of the tokens that were sealed, by repository
}

func (v *services) newCIKeys(ctx context.Context, spec task.Spec) (*ciKeys, error) {
	values, err := v.secrets.All(ctx, spec.Run)
	if err != nil {
		return nil, err
	}
	k := &ciKeys{
		services: v, run: spec.Run, github: unsealGitHubKeys(values),
		sources: map[string]*ghapp.Source{}, minted: map[string]string{},
	}
	notify := func(text string) { v.notify(spec.Run, "info", text) }
	k.cache = v.repos.With(k.github.access(v.config.Machine, notify))
	if !k.github.key.Empty() {
		k.app, err = k.github.installations(v.config.Machine, notify)
	}
	return k, err
}

// token is asked for before every request.
func (k *ciKeys) token(ctx context.Context, org, name string) (secret.String, error) {
	if k.app == nil {
		return k.own(ctx)
	}
	token, err := k.source(org, name).Token(ctx)
	if denied(err) {
		if own, failed := k.own(ctx); failed == nil {
			return own, nil
		}
	}
	if err != nil {
		return token, err
	}
	return token, k.keep(ctx, org+"/"+name, token)
}

// keep seals a token with the run, once.
func (k *ciKeys) keep(ctx context.Context, repository string, token secret.String) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.minted[repository] == mintedName(token) {
		return nil
	}
	if err := k.github.keepMinted(ctx, k.services.config.Machine, k.services.secrets, k.run, token); err != nil {
		return err
	}
	k.minted[repository] = mintedName(token)
	return nil
}

func (k *ciKeys) source(org, name string) *ghapp.Source {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sources[org+"/"+name]
	if s == nil {
		s = k.app.Source(ghapp.Want{Owner: org, Repos: []string{name}, IfGranted: reads()})
		k.sources[org+"/"+name] = s
	}
	return s
}

// refused is told that GitHub does not take a token any more.
func (k *ciKeys) refused(org, name string) {
	if k.app != nil {
		k.source(org, name).Forget()
	}
}

// own is the token of the user.
func (k *ciKeys) own(ctx context.Context) (secret.String, error) {
	if token, ok := k.cache.GHLogin(ctx); ok {
		return token, nil
	}
	if !k.github.token.Empty() {
		return k.github.token, nil
	}
	return secret.String{}, errs.New("cli.followCI", errs.Auth, "insightscli create-github-app, or gh auth login", "there is no GitHub App and no token to read checks with")
}
