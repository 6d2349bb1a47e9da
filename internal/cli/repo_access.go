package cli

import (
	"context"
	"strings"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// The names under which what opens private repositories is sealed with a run: whoever
// carries it out may not see the settings that it was frozen with.
const (
	secretAppKey   = "insightscli.github.key"
	secretGitToken = "insightscli.github.token"
	secretApp      = steps.SecretPlain + "insightscli.github.app" // client ID and slug
)

// githubKeys are what opens private repositories on GitHub, beside what gh and git's
// helpers know.
type githubKeys struct {
	clientID, slug string
	key, token     secret.String
}

// githubKeysOf are those of the settings. A GitHub App counts when it is complete.
func githubKeysOf(c config.Config) githubKeys {
	a := c.Account
	k := githubKeys{token: a.GHToken}
	if k.token.Empty() {
		k.token = a.GitHubToken
	}
	if a.GitHubClientID != "" && !a.GitHubClientSecret.Empty() && a.GitHubSlug != "" && !a.GitHubPrivateKey.Empty() {
		k.clientID, k.slug, k.key = a.GitHubClientID, a.GitHubSlug, a.GitHubPrivateKey
	}
	return k
}

// seal puts the keys among the secrets of a run.
func (k githubKeys) seal(secrets map[string]secret.String) {
	if !k.token.Empty() {
		secrets[secretGitToken] = k.token
	}
	if !k.key.Empty() {
		secrets[secretAppKey], secrets[secretApp] = k.key, secret.New(k.clientID+" "+k.slug)
	}
}

func unsealGitHubKeys(values map[string]secret.String) githubKeys {
	k := githubKeys{key: values[secretAppKey], token: values[secretGitToken]}
	k.clientID, k.slug, _ = strings.Cut(values[secretApp].Reveal(), " ")
	return k
}

// access is how a process with these settings opens repositories; notify is told of
// waits.
func (k githubKeys) access(m config.Machine, notify func(string)) repo.Access {
	a := repo.Access{Token: k.token, Client: githubClient(m), Notify: notify}
	if k.key.Empty() {
		return a
	}
	in, err := ghapp.NewInstallations(ghapp.Credentials{
		ClientID: k.clientID, PrivateKey: k.key, Slug: k.slug, Client: githubClient(m), Notify: notify,
	})
	a.App, a.AppSlug = readers{in, err}, k.slug
	return a
}

// readers makes tokens of a GitHub App that read one repository.
type readers struct {
	app *ghapp.Installations
	err error // what is wrong with the App's settings
}

var _ repo.Credentials = readers{}

// Token implements repo.Credentials.
func (r readers) Token(ctx context.Context, org, name string) (secret.String, time.Time, error) {
	if r.err != nil {
		return secret.String{}, time.Time{}, r.err
	}
	t, err := r.app.Mint(ctx, ghapp.Want{
		Owner: org, Repos: []string{name}, Permissions: map[string]string{"contents": "read"},
	})
	return t.Value, t.Expires, err
}

// note tells of a wait.
func (a *app) note(text string) { a.notef("note: %s", text) }

// repoCache is the cache of repositories with the access that the settings give.
func (a *app) repoCache(dir string, c config.Config) *repo.Cache {
	if a.repos == nil {
		a.repos = repo.New(repo.Options{
			Dir: dir, Environ: a.process.Environ, Access: githubKeysOf(c).access(c.Machine, a.note),
		})
	}
	return a.repos
}

// reposOf is the cache of repositories with the access that was sealed for a run.
func (s *state) reposOf(ctx context.Context, run task.ID, secrets interface {
	All(ctx context.Context, run task.ID) (map[string]secret.String, error)
},
) (*repo.Cache, error) {
	values, err := secrets.All(ctx, run)
	if err != nil {
		return nil, err
	}
	return s.repos.With(unsealGitHubKeys(values).access(s.config.Machine, s.note)), nil
}
