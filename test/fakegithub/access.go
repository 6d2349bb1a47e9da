package fakegithub

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// installation is an app on the repositories of an owner.
type installation struct {
	id        int64
	app       *App
	owner     string
	repos     []string // nil is all of them
	suspended bool
}

// token is a credential: of an installation, or of a user.
type token struct {
	app         *App     // nil for a user
	owner       string   // "" is everyone's repositories
	repos       []string // nil is all of the owner
	permissions map[string]string
	expires     time.Time
}

// AddApp is an app that exists without anybody's click.
func (s *Server) AddApp(slug, owner string, key *rsa.PrivateKey, permissions map[string]string) App {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &App{
		ID: int64(1_000_000 + len(s.apps)), Name: slug, Slug: slug, Owner: owner, ClientID: "Iv23" + rand.Text()[:16],
		Key: key, Permissions: maps.Clone(permissions),
	}
	s.apps = append(s.apps, a)
	return *a
}

// Install installs an app on repositories of an owner, all of them if none is named.
func (s *Server) Install(slug, owner string, repos ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.apps, func(a *App) bool { return a.Slug == slug })
	if i < 0 {
		s.t.Errorf("there is no app %q to install", slug)
		return
	}
	s.installs = append(s.installs, &installation{id: int64(100 + len(s.installs)), app: s.apps[i], owner: owner, repos: repos})
}

// Suspend stops all installations of an owner.
func (s *Server) Suspend(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.installs {
		in.suspended = in.suspended || in.owner == owner
	}
}

// Token is a credential of an app for the repositories of an owner, all of them if
// none is named.
func (s *Server) Token(owner string, permissions map[string]string, repos ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &App{ID: 1, Name: "insights", Slug: "insights", Permissions: permissions}
	return s.issue(&token{app: a, owner: owner, repos: repos, permissions: permissions})
}

// UserToken is a credential of a person, which can do everything but have its commits
// signed.
func (s *Server) UserToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issue(&token{})
}

// SetTokenLife changes how long credentials are good that are made from now on.
func (s *Server) SetTokenLife(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.TokenLife = d
}

// Revoke ends every credential.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// TokenLife changes how long the tokens are good that are made from now on.
func (s *Server) TokenLife(life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.TokenLife = life
}

// revokeToken ends the credential that the request is made with.
func (s *Server) revokeToken(r *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := bearerOf(r)
	if t := s.tokens[text]; t == nil || t.expires.Before(s.o.Clock()) {
		return refusal(http.StatusUnauthorized, "Bad credentials")
	}
	delete(s.tokens, text)
	s.revoked = append(s.revoked, text)
	return answer{http.StatusNoContent, nil}
}

// Tokens are the credentials that were ever made, and Revoked those that were given back.
func (s *Server) Tokens() (all, revoked []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.issued), slices.Clone(s.revoked)
}

// issue makes the text of a token. An installation's is long and has dots, as they
// are since April 2026.
func (s *Server) issue(t *token) string {
	life := s.o.TokenLife
	if life == 0 {
		life = time.Hour
	}
	t.expires = s.o.Clock().Add(life)
	text := "ghp_" + rand.Text() + rand.Text()[:10]
	if t.app != nil {
		text = fmt.Sprintf("ghs_%d_%s.%s.%s-_", t.app.ID, rand.Text(), strings.Repeat(rand.Text(), 15), rand.Text())
	}
	s.tokens[text] = t
	s.issued = append(s.issued, text)
	if slices.Contains(slices.Collect(maps.Values(t.permissions)), "write") {
		s.writers = append(s.writers, text)
	}
	return text
}

// Writers are all tokens of apps that could write, whatever became of them.
func (s *Server) Writers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writers)
}

// may returns what a token is, if it is good for a repository.
func (s *Server) may(text string, repo *Repo, permission, want string) (*token, *answer) {
	refuse := func(status int, message string) (*token, *answer) {
		a := refusal(status, message)
		return nil, &a
	}
	t := s.tokens[text]
	switch {
	case t == nil || t.expires.Before(s.o.Clock()):
		return refuse(http.StatusUnauthorized, "Bad credentials")
	case repo == nil, t.owner != "" && !strings.EqualFold(t.owner, repo.Owner),
		len(t.repos) > 0 && !slices.ContainsFunc(t.repos, func(n string) bool { return strings.EqualFold(n, repo.Name) }):
		return refuse(http.StatusNotFound, "Not Found")
	case !t.can(permission, want):
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	case repo.Archived && want == "write":
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	return t, nil
}

func (t *token) can(permission, want string) bool {
	have := t.permissions[permission]
	return t.app == nil || permission == "metadata" || have == want || have == "write"
}

// installations serves the operations that an app's own key is good for.
func (s *Server) installations(r *http.Request, op string, params map[string]string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, problem := s.bearer(bearerOf(r))
	if problem != "" {
		return refusal(http.StatusUnauthorized, problem)
	}
	for _, in := range s.installs {
		if in.app != a || !in.is(op, params) {
			continue
		}
		if op == OpRepoInstallation && s.repo(params["owner"], params["repo"]) == nil {
			break
		}
		if op == OpAccessToken {
			return s.accessTokens(r, in)
		}
		return answer{http.StatusOK, s.fill("installation", s.describeInstallation(in))}
	}
	return refusal(http.StatusNotFound, "Not Found")
}

// is reports whether an operation is about an installation.
func (in *installation) is(op string, params map[string]string) bool {
	switch op {
	case OpOrgInstallation:
		return strings.EqualFold(in.owner, params["org"])
	case OpUserInstallation:
		return strings.EqualFold(in.owner, params["username"])
	case OpRepoInstallation:
		return strings.EqualFold(in.owner, params["owner"]) && in.has(params["repo"])
	}
	return strconv.FormatInt(in.id, 10) == params["installation_id"]
}

func (in *installation) has(repo string) bool {
	return len(in.repos) == 0 || slices.ContainsFunc(in.repos, func(n string) bool { return strings.EqualFold(n, repo) })
}

func (s *Server) describeInstallation(in *installation) map[string]any {
	selection := "all"
	if len(in.repos) > 0 {
		selection = "selected"
	}
	m := map[string]any{
		"id": in.id, "app_id": in.app.ID, "app_slug": in.app.Slug, "account": s.user(in.owner), "target_type": "Organization",
		"permissions": in.app.Permissions, "repository_selection": selection,
		"html_url": fmt.Sprintf("%s/organizations/%s/settings/installations/%d", s.URL, in.owner, in.id),
	}
	if in.suspended {
		m["suspended_at"] = s.o.Clock().UTC().Format(time.RFC3339)
	}
	return m
}

// accessTokens makes a token of an installation, as narrow as it was asked for.
func (s *Server) accessTokens(r *http.Request, in *installation) answer {
	if in.suspended {
		return refusal(http.StatusForbidden, "This installation has been suspended")
	}
	var want struct {
		Repositories []string          `json:"repositories"`
		Permissions  map[string]string `json:"permissions"`
	}
	if err := s.decode(r, &want); err != nil {
		return refusal(http.StatusUnprocessableEntity, err.Error())
	}
	for _, name := range want.Repositories {
		if s.repo(in.owner, name) == nil || !in.has(name) {
			return refusal(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
	}
	t := &token{app: in.app, owner: in.owner, repos: want.Repositories, permissions: want.Permissions}
	if len(t.repos) == 0 {
		t.repos = in.repos
	}
	if len(t.permissions) == 0 {
		t.permissions = maps.Clone(in.app.Permissions)
	}
	for name, level := range t.permissions {
		if have := in.app.Permissions[name]; have != level && have != "write" {
			return refusal(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
	}
	selection := "all"
	if len(t.repos) > 0 {
		selection = "selected"
	}
	text := s.issue(t)
	return answer{http.StatusCreated, map[string]any{
		"token": text, "expires_at": t.expires.UTC().Format(time.RFC3339), "permissions": t.permissions, "repository_selection": selection,
	}}
}

// decode reads the body of a request, and reports what the operation does not have:
// the description lets it pass.
func (s *Server) decode(r *http.Request, into any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err != nil {
		s.t.Errorf("the body of %s %s: %v", r.Method, r.URL.Path, err)
	}
	return err
}
