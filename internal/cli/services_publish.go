package cli

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gateway/mcp"
	"github.com/Insights/insightscli/internal/publish"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// freezePublish decides whether the agent is to open a pull request: where it can.
func (o *runOptions) freezePublish(_ context.Context, p *plan) error {
	if !p.spec.Agent.Drives() {
		return nil
	}
	on := slices.ContainsFunc(p.spec.Repos, func(r task.Repo) bool {
		_, _, ok := repo.OnGitHub(p.config.GitHub(), r)
		return ok
	})
	if o.createPR && o.createPRGiven && !on {
		return usageError("--create-pr needs a repository on GitHub, or one whose origin is there (--repo)")
	}
	p.spec.CreatePR = o.createPR && on
	return nil
}

// publishTools are the tools by which the agent of a run publishes.
func (v *services) publishTools(spec task.Spec, r steps.Reporter, keys githubKeys) []mcp.Tool {
	if len(spec.Repos) == 0 {
		return nil
	}
	notify := func(text string) { v.notify(spec.Run, "info", text) }
	w := &writers{services: v, run: spec.Run, github: keys, notify: notify, sources: map[string]*ghapp.Source{}}
	return publish.New(publish.Options{
		Run: spec.Run, Task: spec.Task, WorkDir: spec.WorkDir(), CreatePR: spec.CreatePR,
		Workspace: func() ([]repo.Prepared, repo.Execer, error) {
			ws, err := r.Workspace()
			return ws.Repos, ws.Exec, err
		},
		Repos:      func(ctx context.Context) (*repo.Cache, error) { return v.reposFor(ctx, spec.Run, v.secrets, notify) },
		Credential: w.credential,
		Tell:       func(p task.Published) { r.Tell(task.KindPublished, p) },
		GitHub:     cmp.Or(keys.url, "https://github.com"), APIURL: apiURL(keys.url),
		Environ: v.environ, Client: githubClient(v.config.Machine), Notify: notify,
	}).Tools()
}

// writers are what a run's agent publishes with: the App's tokens, narrowed to writing one
// repository, or else the user's own. They stay in this process.
type writers struct {
	services *services
	run      task.ID
	github   githubKeys
	notify   func(string)

	mu      sync.Mutex // guards the rest
	app     *ghapp.Installations
	sources map[string]*ghapp.Source
}

// credential implements publish.Options.Credential.
func (w *writers) credential(ctx context.Context, owner, name string, pulls bool) (publish.Credential, error) {
	var refused error
	if !w.github.key.Empty() {
		c, err := w.ofApp(ctx, owner, name, pulls)
		if err == nil || !denied(err) {
			return c, err
		}
		refused = err
	}
	if token, ok := w.own(ctx); ok {
		return publish.Credential{User: true, Token: func(context.Context) (secret.String, error) { return token, nil }}, nil
	}
	if refused != nil {
		return publish.Credential{}, refused
	}
	return publish.Credential{}, errs.New("cli.publish", errs.Auth, "tell the user to run: insightscli create-github-app",
		"no GitHub credential: there is neither a GitHub App nor a login of gh nor a token (GH_TOKEN, GITHUB_TOKEN)")
}

// ofApp is a credential of the App, if that may write to the repository.
func (w *writers) ofApp(ctx context.Context, owner, name string, pulls bool) (publish.Credential, error) {
	s, err := w.source(owner, name, pulls)
	if err != nil {
		return publish.Credential{}, err
	}
	token := func(ctx context.Context) (secret.String, error) {
		t, err := s.Token(ctx)
		if err == nil {
			err = w.github.keepMinted(ctx, w.services.config.Machine, w.services.secrets, w.run, t)
		}
		return t, err
	}
	_, err = token(ctx)
	return publish.Credential{Token: token, Refused: s.Forget}, err
}

func (w *writers) source(owner, name string, pulls bool) (*ghapp.Source, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.app == nil {
		app, err := w.github.installations(w.services.config.Machine, w.notify)
		if err != nil {
			return nil, err
		}
		w.app = app
	}
	want := ghapp.Want{
		Owner: owner, Repos: []string{name}, Permissions: map[string]string{"contents": "write"},
		IfGranted: map[string]string{"workflows": "write", "pull_requests": "read"},
	}
	key := owner + "/" + name
	if pulls {
		want.Permissions = map[string]string{"contents": "read", "pull_requests": "write"}
		want.IfGranted, key = nil, key+" pulls"
	}
	s := w.sources[key]
	if s == nil {
		s = w.app.Source(want)
		w.sources[key] = s
	}
	return s, nil
}

// own is the token of the user.
func (w *writers) own(ctx context.Context) (secret.String, bool) {
	cache, err := w.services.reposFor(ctx, w.run, w.services.secrets, w.notify)
	if err != nil {
		return secret.String{}, false
	}
	if token, ok := cache.GHLogin(ctx); ok {
		return token, true
	}
	return w.github.token, !w.github.token.Empty()
}
