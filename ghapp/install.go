package ghapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
	"github.com/Insights/insightscli/internal/secret"
)

// Credentials are those of an app.
type Credentials struct {
	ClientID   string
	PrivateKey secret.String // in any form that NormalKey takes
	// AppID, if it is known, is tried as the issuer too: servers before 3.14 take no other.
	AppID int64
	// Slug, if it is known, makes the link to install the app; GitHub is asked otherwise.
	Slug   string
	APIURL string // "" is that of github.com

	Client *http.Client // nil is one with a time limit
	// Notify is told of a wait that the user would wonder about; nil is nobody.
	Notify func(string)
	// Pause waits; nil is a timer.
	Pause func(context.Context, time.Duration) error
}

// Want says what a token is to be good for. Ask for no more than the step needs.
type Want struct {
	Owner string
	// Repos are names without the owner; one at least. The first decides which
	// installation is asked.
	Repos []string
	// Permissions go by GitHub's names, to read or write; it is an error if the app
	// lacks one. Without any here and in IfGranted, the token has all that the app has.
	Permissions map[string]string
	// IfGranted are asked for as far as the app has them; [Token] tells which.
	IfGranted map[string]string
}

// Token is a credential of an installation, good for about an hour.
type Token struct {
	Value       secret.String
	Expires     time.Time // by this machine's clock
	Permissions map[string]string
}

// Installations mints tokens of one app. It may be used by several goroutines.
type Installations struct {
	c      Credentials
	api    string
	sign   func(jwt.Claims) (string, error)
	client *http.Client

	mu     sync.Mutex
	skew   time.Duration // how far our clock is ahead
	issuer string
}

// NewInstallations checks the credentials by their looks, and asks nobody.
func NewInstallations(c Credentials) (*Installations, error) {
	if err := checkClientID(c.ClientID); err != nil {
		return nil, err
	}
	api, err := parseAPI(c.APIURL)
	if err != nil {
		return nil, err
	}
	_, key, err := readKey(c.PrivateKey)
	if err != nil {
		return nil, err
	}
	in := &Installations{c: c, api: api, issuer: c.ClientID, sign: func(claims jwt.Claims) (string, error) {
		return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(key)
	}}
	in.client = ghclient.New(ghclient.Options{Token: in.jwt, Base: c.Client, Notify: c.Notify, Pause: c.Pause})
	return in, nil
}

// jwt is the app's own token, by GitHub's clock.
func (in *Installations) jwt(context.Context) (secret.String, error) {
	in.mu.Lock()
	issuer, skew := in.issuer, in.skew
	in.mu.Unlock()
	text, err := in.sign(newClaims(issuer, time.Now().Add(-skew)))
	return secret.New(text), err
}

// newClaims are those of an app's token that is used now.
func newClaims(issuer string, now time.Time) jwt.RegisteredClaims {
	return jwt.RegisteredClaims{
		Issuer: issuer, IssuedAt: jwt.NewNumericDate(now.Add(-tokenAge)), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLife)),
	}
}

// ask returns a client of the API. Unlike newClient's it follows a repository to its
// new name, on the same host.
func (in *Installations) ask() (*github.Client, error) {
	client, err := newClient(nil, in.api)
	if err != nil {
		return nil, err
	}
	own := github.NewClient(in.client)
	own.BaseURL, own.UserAgent = client.BaseURL, client.UserAgent
	return own, nil
}

// Mint asks GitHub for a new token. What stands in the way is an error with a hint:
// the app is not installed, or on other repositories, or suspended, or lacks a
// permission.
func (in *Installations) Mint(ctx context.Context, w Want) (Token, error) {
	if err := w.check(); err != nil {
		return Token{}, err
	}
	client, err := in.ask()
	if err != nil {
		return Token{}, err
	}
	found, at, err := in.find(ctx, client, w)
	if err != nil {
		return Token{}, err
	}
	names, ids := w.today(at)
	permissions, err := w.permissions(namesOf(found.GetPermissions()))
	if err != nil {
		return Token{}, err
	}
	asked := time.Now()
	got, resp, err := client.Apps.CreateInstallationToken(ctx, found.GetID(),
		&github.InstallationTokenOptions{Repositories: names, RepositoryIDs: ids, Permissions: permissions})
	if err != nil {
		return Token{}, in.explain(ctx, w, found, resp, err)
	}
	t := Token{Value: secret.New(got.GetToken()), Expires: got.GetExpiresAt().Time, Permissions: namesOf(got.GetPermissions())}
	if t.Value.Empty() || t.Expires.IsZero() {
		return Token{}, errs.New(opMint, errs.Unavailable, "", "GitHub's answer has no token")
	}
	t.Expires = t.Expires.Add(skewOf(resp.Header, asked))
	return t, nil
}

const opMint = "ghapp.Mint"

// validName is what an owner or a repository may be called; go-github puts it into an
// address as it is.
var validName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (w *Want) check() error {
	if len(w.Repos) == 0 {
		return errs.New(opMint, errs.Usage, "", "no repository to ask a token for")
	}
	for _, name := range append([]string{w.Owner}, w.Repos...) {
		if !validName.MatchString(name) || strings.Trim(name, ".") == "" {
			return errs.New(opMint, errs.Usage, "give it as owner/name", "%q is no name on GitHub", name)
		}
	}
	return nil
}

// permissions are those to ask for, given what the app has, as go-github has them: a
// field for each.
func (w *Want) permissions(have map[string]string) (*github.InstallationPermissions, error) {
	if len(w.Permissions)+len(w.IfGranted) == 0 {
		return nil, nil
	}
	ask := maps.Clone(w.Permissions)
	if ask == nil {
		ask = map[string]string{}
	}
	for name, want := range w.IfGranted {
		if level(have[name]) >= level(want) && level(ask[name]) < level(want) {
			ask[name] = want
		}
	}
	if len(ask) == 0 { // GitHub would take nothing for everything
		return nil, errs.New(opMint, errs.Auth, "give the app a permission on its settings page",
			"the GitHub App has none of the permissions %v", slices.Sorted(maps.Keys(w.IfGranted)))
	}
	text, err := json.Marshal(ask)
	p := &github.InstallationPermissions{}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if known := namesOf(p); err == nil && len(known) != len(ask) {
		err = fmt.Errorf("unknown permission among %v", slices.Sorted(maps.Keys(ask)))
	}
	return p, err
}

// namesOf are permissions by their names, which are in the tags of go-github's fields.
func namesOf(p *github.InstallationPermissions) map[string]string {
	names := map[string]string{}
	if text, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(text, &names) // all of its fields are strings
	}
	return names
}

// today are the repositories as a token can be asked for: the first may have another name
// by now, in which case GitHub has led to the address at.
func (w *Want) today(at string) (names []string, ids []int64) {
	words := strings.Split(at, "/")
	for i, word := range words {
		switch {
		case word == "repositories" && i+2 < len(words) && len(w.Repos) == 1:
			if id, err := strconv.ParseInt(words[i+1], 10, 64); err == nil {
				return nil, []int64{id}
			}
		case word == "repos" && i+3 < len(words) && validName.MatchString(words[i+2]):
			return append([]string{words[i+2]}, w.Repos[1:]...), nil
		}
	}
	return w.Repos, nil
}

// find asks for the installation on the first repository, and looks whether it will
// give what is wanted. At is the path that GitHub has answered from.
func (in *Installations) find(ctx context.Context, client *github.Client, w Want) (found *github.Installation, at string, err error) {
	ask := func() (*github.Installation, *github.Response, error) {
		asked := time.Now()
		found, resp, err := client.Apps.FindRepositoryInstallation(ctx, w.Owner, w.Repos[0])
		if resp != nil {
			in.mu.Lock()
			in.skew = skewOf(resp.Header, asked)
			in.mu.Unlock()
		}
		return found, resp, err
	}
	var resp *github.Response
	found, resp, err = ask()
	if statusOf(err) == http.StatusUnauthorized {
		found, resp, err = ask() // by GitHub's clock
	}
	if statusOf(err) == http.StatusUnauthorized && in.c.AppID != 0 {
		in.mu.Lock()
		in.issuer = strconv.FormatInt(in.c.AppID, 10)
		in.mu.Unlock()
		found, resp, err = ask()
	}
	if err != nil {
		return nil, "", in.explain(ctx, w, nil, resp, err)
	}
	if found.SuspendedAt != nil {
		return nil, "", suspended(found)
	}
	have := namesOf(found.GetPermissions())
	for _, name := range slices.Sorted(maps.Keys(w.Permissions)) {
		if want := w.Permissions[name]; level(have[name]) < level(want) {
			return nil, "", errs.New(opMint, errs.Auth,
				"give the app the permission, then accept it at "+found.GetHTMLURL(),
				"the GitHub App has no %s access to %s of %s/%s", want, name, w.Owner, w.Repos[0])
		}
	}
	return found, resp.Request.URL.Path, nil
}

func suspended(found *github.Installation) error {
	return errs.New(opMint, errs.Auth, "unsuspend it at "+found.GetHTMLURL(), "the installation of the GitHub App is suspended")
}

// explain says why there is no token.
func (in *Installations) explain(ctx context.Context, w Want, found *github.Installation, resp *github.Response, err error) error {
	if ctx.Err() != nil {
		return interrupted(ctx, opMint, "", "while GitHub was asked for a token")
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	if resp != nil {
		if page := ghclient.SSO(resp.Header); page != "" {
			return errs.New(opMint, errs.Auth, "authorize it at "+page, "%s asks for single sign-on", w.Owner)
		}
	}
	switch status := statusOf(err); {
	case isRateLimit(err), status == http.StatusTooManyRequests, status == http.StatusForbidden && saysLimit(resp, err):
		return errs.New(opMint, errs.Unavailable, "wait a while, then try again", "GitHub limits how often it may be asked")
	case status == http.StatusUnauthorized:
		return errs.New(opMint, errs.Auth, "copy the client ID and a new private key from the settings page of one app",
			"GitHub refuses the key for the client ID %s: %w", in.c.ClientID, plain(err))
	case status == http.StatusNotFound:
		return in.missing(ctx, w)
	case status == http.StatusForbidden && found != nil && strings.Contains(err.Error(), "suspended"):
		return suspended(found)
	case status == http.StatusUnprocessableEntity && found != nil:
		return errs.New(opMint, errs.Auth, "add the repositories at "+found.GetHTMLURL(),
			"GitHub gives no token for %s of %s: %w", strings.Join(w.Repos, ", "), w.Owner, plain(err))
	case status >= http.StatusMultipleChoices && status < http.StatusInternalServerError:
		return errs.New(opMint, errs.Auth, "", "GitHub gives no token for %s/%s: %w", w.Owner, w.Repos[0], plain(err))
	}
	return errs.New(opMint, errs.Unavailable, "check the connection to "+in.api, "ask GitHub for a token: %w", plain(err))
}

// saysLimit recognises a refusal that passes, where it has none of the marks of the
// documentation.
func saysLimit(resp *github.Response, err error) bool {
	return resp != nil && resp.Header.Get("Retry-After") != "" || strings.Contains(strings.ToLower(err.Error()), "rate limit")
}
