package repo

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Credentials make tokens that may read a repository on GitHub.
type Credentials interface {
	// Token returns a token for org/name and when it expires. An error of the kind
	// Unavailable says that nobody could be asked, any other that there is no token for
	// this repository, with the way to change that as its hint.
	Token(ctx context.Context, org, name string) (token secret.String, expires time.Time, err error)
}

// Access says what opens private repositories. It stays on the host: git is given it
// in the environment of one process, for one address, and no redirect is followed with
// it. The zero value asks gh and the credential helpers of the user's git.
type Access struct {
	// GitHub is the origin of the GitHub that App and Token belong to; empty is
	// https://github.com. They are sent nowhere else.
	GitHub string
	// App makes tokens of the GitHub App; nil is none.
	App Credentials
	// AppSlug is the App's name in its address.
	AppSlug string
	// Token is the user's own, from the environment.
	Token secret.String
	// GH is the program gh; empty looks it up.
	GH string
	// Client asks where a repository has moved to; nil is a plain one.
	Client *http.Client
	// Notify is told of a wait that the user would wonder about; nil is nobody.
	Notify func(string)
}

const defaultGitHub = "https://github.com"

// access is Access at work. opened remembers what let us in, by address.
type access struct {
	Access
	git     *git
	environ []string
	pause   func(context.Context, time.Duration) error

	mu     sync.Mutex
	opened map[string]grant
	lists  map[string]listing
}

func newAccess(a Access, g *git, environ []string) *access {
	return &access{Access: a, git: g, environ: environ, pause: ghclient.Pause, opened: map[string]grant{}, lists: map[string]listing{}}
}

// grant is what one source gave for one address.
type grant struct {
	source  string // for people; empty: anonymous
	header  secret.String
	expires time.Time // zero: not known
	public  bool      // the address is on GitHub
}

// envTokens names the user's own token for people.
const envTokens = "GH_TOKEN or GITHUB_TOKEN"

// tokenUser stands before a token of GitHub where a user name is wanted.
const tokenUser = "x-access-token"

func newGrant(source, user string, password secret.String) grant {
	pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password.Reveal()))
	return grant{source: source, header: secret.New("Basic " + pair)}
}

func (g grant) anonymous() bool { return g.header.Empty() }

// env is the environment that gives git the grant for an address. Git would send the
// header to wherever it is redirected, so it is not to follow.
func (g grant) env(address string) []string {
	if g.anonymous() && !g.public {
		return nil
	}
	out := []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.followRedirects", "GIT_CONFIG_VALUE_0=false"}
	if g.anonymous() {
		return out
	}
	out[0] = "GIT_CONFIG_COUNT=2"
	return append(out, "GIT_CONFIG_KEY_1=http."+address+".extraHeader", "GIT_CONFIG_VALUE_1=Authorization: "+g.header.Reveal())
}

// keySource is one place that may have a key to an address.
type keySource struct {
	name string
	get  func(context.Context) (grant, error) // errNoKey: it has none
}

// sources lists what may open an address, in the order in which it is tried.
func (a *access) sources(address string) []keySource {
	anonymous := keySource{get: func(context.Context) (grant, error) { return grant{public: a.onGitHub(address)}, nil }}
	if !confidential(address) {
		return []keySource{anonymous}
	}
	helper := keySource{name: "the credential helper of git", get: func(ctx context.Context) (grant, error) { return a.askHelper(ctx, address) }}
	if !a.onGitHub(address) {
		return []keySource{anonymous, helper}
	}
	org, name := ownerAndName(address)
	all := []keySource{
		{name: "gh", get: a.askGH},
		{name: envTokens, get: func(context.Context) (grant, error) { return a.fromToken() }},
		helper, anonymous,
	}
	if a.App != nil {
		app := keySource{name: a.appName(), get: func(ctx context.Context) (grant, error) { return a.askApp(ctx, org, name) }}
		all = append([]keySource{app}, all...)
	}
	return all
}

func (a *access) appName() string {
	if a.AppSlug == "" {
		return "the GitHub App"
	}
	return "the GitHub App " + a.AppSlug
}

func (a *access) askApp(ctx context.Context, org, name string) (grant, error) {
	token, expires, err := a.App.Token(ctx, org, name)
	if err != nil {
		return grant{}, err
	}
	if token.Empty() {
		return grant{}, errNoKey
	}
	g := newGrant(a.appName(), tokenUser, token)
	g.expires = expires
	return g, nil
}

func (a *access) fromToken() (grant, error) {
	if a.Token.Empty() {
		return grant{}, errNoKey
	}
	return newGrant(envTokens, tokenUser, a.Token), nil
}

// onGitHub reports whether an address is on the GitHub that the credentials are for.
func (a *access) onGitHub(address string) bool {
	base := a.GitHub
	if base == "" {
		base = defaultGitHub
	}
	return sameOrigin(address, base)
}

func sameOrigin(one, other string) bool {
	a, errA := url.Parse(one)
	b, errB := url.Parse(other)
	return errA == nil && errB == nil && a.Host != "" &&
		strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Host, b.Host)
}

// confidential reports whether a key may travel to an address: over https, or to this
// machine.
func confidential(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return u.Scheme == "https" || (u.Scheme == "http" && (host == "127.0.0.1" || host == "::1" || host == "localhost"))
}

// ownerAndName are those of an address of a repository, as they are spelled there.
func ownerAndName(address string) (org, name string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 {
		return "", ""
	}
	return parts[len(parts)-2], trimGit(parts[len(parts)-1])
}

// remembered is what opened an address before, while it is still good.
func (a *access) remembered(address string) (grant, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, ok := a.opened[address]
	if ok && !g.expires.IsZero() && time.Until(g.expires) < 5*time.Minute {
		delete(a.opened, address)
		return grant{}, false
	}
	return g, ok
}

func (a *access) remember(address string, g grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened[address] = g
}

func (a *access) forget(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.opened, address)
}

// server is a repository on a server and what opens it.
type server struct {
	url   string
	grant grant
}

// call is a git process that talks to the server.
func (s server) call(args ...string) call {
	return call{args: args, env: s.grant.env(s.url)}
}

// reach calls try with one key after the other until the server lets it in, and returns
// the server as it was reached: the repository may have another address by now. The
// error is the last one that is not a matter of keys, or tells what is missing.
func (a *access) reach(ctx context.Context, address string, try func(server) error) (server, error) {
	if g, ok := a.remembered(address); ok {
		s, err := a.try(ctx, server{url: address, grant: g}, try)
		if !denied(err) {
			return s, err
		}
		a.forget(address)
	}
	var no refusals
	for _, src := range a.sources(address) {
		g, err := src.get(ctx)
		if ctx.Err() != nil {
			return server{}, context.Cause(ctx)
		}
		if errors.Is(err, errNoKey) {
			continue
		}
		if err != nil {
			no = append(no, refusedKey{source: src.name, err: err})
			continue
		}
		s, err := a.try(ctx, server{url: address, grant: g}, try)
		if err == nil {
			a.remember(s.url, g)
			return s, nil
		}
		if !denied(err) {
			return s, err
		}
		no = append(no, refusedKey{source: src.name, err: err, tried: true})
	}
	return server{}, a.refusal(address, no)
}

// denied reports whether another key may open what this one did not. GitHub does not
// tell a repository that is not there from one that may not be seen.
func denied(err error) bool {
	kind := errs.KindOf(err)
	return err != nil && (kind == errs.Auth || kind == errs.NotFound)
}

// try is one key. It waits where the server limits how often it may be asked, and
// follows a repository to its new address on the same server.
func (a *access) try(ctx context.Context, s server, try func(server) error) (server, error) {
	err := a.patiently(ctx, s, try)
	if !movedAway(err) {
		return s, remoteError(s.url, err)
	}
	to, lookup := a.newAddress(ctx, s)
	if lookup != nil {
		return s, lookup
	}
	s.url = to
	return s, remoteError(to, a.patiently(ctx, s, try))
}

// limitPauses are how long a server that limits requests is given: a minute in all.
func limitPauses() []time.Duration {
	return []time.Duration{5 * time.Second, 15 * time.Second, 40 * time.Second}
}

func (a *access) patiently(ctx context.Context, s server, try func(server) error) error {
	err := try(s)
	for _, d := range limitPauses() {
		if !rateLimited(err) {
			return err
		}
		if a.Notify != nil {
			a.Notify("the server of " + s.url + " limits how often it may be asked: waiting " + d.String())
		}
		if err := a.pause(ctx, d); err != nil {
			return err
		}
		err = try(s)
	}
	return err
}

// moved is the repository at another address.
func moved(r task.Repo, address string) task.Repo {
	to, err := Parse(address)
	if err != nil || to.Source != task.RepoRemote {
		return r
	}
	r.URL, r.Org, r.Name = to.URL, to.Org, to.Name
	return r
}
