package cli

import (
	"context"
	"strings"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
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
	secretGitHub   = steps.SecretPlain + "insightscli.github.url" // where it is not github.com
)

// githubKeys are what opens private repositories on GitHub, beside what gh and git's
// helpers know.
type githubKeys struct {
	url            string // of the GitHub that they are for; empty is github.com
	clientID, slug string
	key, token     secret.String
}

// githubKeysOf are those of the settings. A GitHub App counts when it is complete. Where a
// file that may have come with a repository says which GitHub it is, only an App of such a
// file is asked there: the user's own keys are for the GitHub that the user has named.
func githubKeysOf(c config.Config) githubKeys {
	a := c.Account
	k := githubKeys{url: c.GitHub()}
	_, foreign := c.ByProject("INSIGHTS_GITHUB_URL")
	foreign = foreign && k.url != ""
	if k.token = a.GHToken; k.token.Empty() {
		k.token = a.GitHubToken
	}
	if foreign {
		k.token = secret.String{}
	}
	_, sameFile := c.ByProject("GITHUB_APP_PRIVATE_KEY")
	complete := a.GitHubClientID != "" && !a.GitHubClientSecret.Empty() && a.GitHubSlug != "" && !a.GitHubPrivateKey.Empty()
	if complete && (!foreign || sameFile) {
		k.clientID, k.slug, k.key = a.GitHubClientID, a.GitHubSlug, a.GitHubPrivateKey
	}
	return k
}

// seal puts the keys among the secrets of a run.
func (k githubKeys) seal(secrets map[string]secret.String) {
	if k.url != "" {
		secrets[secretGitHub] = secret.New(k.url)
	}
	if !k.token.Empty() {
		secrets[secretGitToken] = k.token
	}
	if !k.key.Empty() {
		secrets[secretAppKey], secrets[secretApp] = k.key, secret.New(k.clientID+" "+k.slug)
	}
}

func unsealGitHubKeys(values map[string]secret.String) githubKeys {
	k := githubKeys{url: values[secretGitHub].Reveal(), key: values[secretAppKey], token: values[secretGitToken]}
	k.clientID, k.slug, _ = strings.Cut(values[secretApp].Reveal(), " ")
	return k
}

// access is how a process with these settings opens repositories; notify is told of
// waits.
func (k githubKeys) access(m config.Machine, notify func(string)) repo.Access {
	a := repo.Access{GitHub: k.url, Token: k.token, Client: githubClient(m), Notify: notify}
	if k.key.Empty() {
		return a
	}
	in, err := k.installations(m, notify)
	a.App, a.AppSlug = readers{app: in, err: err}, k.slug
	return a
}

// installations are those of the App, whose tokens this process may ask for.
func (k githubKeys) installations(m config.Machine, notify func(string)) (*ghapp.Installations, error) {
	return ghapp.NewInstallations(ghapp.Credentials{
		ClientID: k.clientID, PrivateKey: k.key, Slug: k.slug, APIURL: apiURL(k.url), Client: githubClient(m), Notify: notify,
	})
}

// readers makes tokens of a GitHub App that read one repository.
type readers struct {
	app *ghapp.Installations
	err error // what is wrong with the App's settings
	// minted is told of every token; nil is nobody. Its error keeps the token from being
	// used.
	minted func(context.Context, secret.String) error
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
	if err == nil && r.minted != nil {
		err = r.minted(ctx, t.Value)
	}
	return t.Value, t.Expires, err
}

// denied reports whether GitHub was asked and gives no token.
func denied(err error) bool {
	kind := errs.KindOf(err)
	return kind == errs.Auth || kind == errs.NotFound
}

// note tells of a wait.
func (a *app) note(text string) { a.notef("note: %s", text) }

// repoCache is the cache of repositories with the access that the settings give.
func (a *app) repoCache(dir string, c config.Config) *repo.Cache {
	if a.repos == nil {
		keys := githubKeysOf(c)
		access := keys.access(c.Machine, a.note)
		a.revoke = func(ctx context.Context, token secret.String) { keys.revoke(ctx, c.Machine, token) }
		if r, ok := access.App.(readers); ok {
			r.minted = func(_ context.Context, token secret.String) error {
				a.minted = append(a.minted, token) // nobody else looks up repositories meanwhile
				return nil
			}
			access.App = r
		}
		a.repos = repo.New(repo.Options{Dir: dir, Environ: a.process.Environ, Access: access})
	}
	return a.repos
}

// sealMinted puts what GitHub has given for the look at a run's repositories among the
// run's secrets.
func (a *app) sealMinted(secrets map[string]secret.String) {
	for _, token := range a.minted {
		secrets[mintedName(token)] = token
	}
}

// revokeMinted ends what GitHub has given for the look at repositories of which no run came
// to be.
func (a *app) revokeMinted(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeBound)
	defer cancel()
	for _, token := range a.minted {
		a.revoke(ctx, token)
	}
	a.minted = nil
}

// reposOf is the cache of repositories with the access that was sealed for a run.
func (s *state) reposOf(ctx context.Context, run task.ID, secrets sealing) (*repo.Cache, error) {
	return s.reposFor(ctx, run, secrets, s.note)
}

// reposFor is reposOf, with somebody else to be told of waits.
func (s *state) reposFor(ctx context.Context, run task.ID, secrets sealing, notify func(string)) (*repo.Cache, error) {
	values, err := secrets.All(ctx, run)
	if err != nil {
		return nil, err
	}
	keys := unsealGitHubKeys(values)
	access := keys.access(s.config.Machine, notify)
	if r, ok := access.App.(readers); ok {
		r.minted = func(ctx context.Context, token secret.String) error {
			return keys.keepMinted(ctx, s.config.Machine, secrets, run, token)
		}
		access.App = r
	}
	return s.repos.With(access), nil
}
