package ghapp

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/test/fakegithub"
)

// writing is what a signed commit needs.
func writing() map[string]string {
	return map[string]string{"contents": "write", "pull_requests": "write"}
}

// installed is a GitHub with an app, and what it takes to mint tokens of it.
func installed(t *testing.T, o fakegithub.Options, repos ...string) (*fakegithub.Server, *Installations) {
	t.Helper()
	gh := fakegithub.New(t, o)
	key := newKey(t)
	a := gh.AddApp("agent", "acme", key, map[string]string{"contents": "write", "pull_requests": "write", "metadata": "read"})
	gh.AddRepo("acme", "app")
	gh.AddRepo("acme", "lib")
	if repos != nil {
		gh.Install("agent", "acme", repos...)
	}
	in, err := NewInstallations(Credentials{
		ClientID: a.ClientID, AppID: a.ID, APIURL: gh.URL + "/api/v3",
		PrivateKey: secret.New(encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))),
		Pause:      func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return gh, in
}

func TestATokenIsAsNarrowAsItWasAskedFor(t *testing.T) {
	t.Parallel()
	gh, in := installed(t, fakegithub.Options{}, "app", "lib")
	got, err := in.Mint(t.Context(), Want{Owner: "acme", Repos: []string{"app"}, Permissions: map[string]string{"contents": "read"}})
	if err != nil || !strings.HasPrefix(got.Value.Reveal(), "ghs_") || len(got.Permissions) != 1 || got.Permissions["contents"] != "read" {
		t.Fatalf("%+v, %v", got, err)
	}
	if life := time.Until(got.Expires); life < 50*time.Minute || life > 61*time.Minute {
		t.Errorf("good for %s", life)
	}
	if text := fmt.Sprintf("%+v %v", got, in); strings.Contains(text, got.Value.Reveal()) {
		t.Error("the token prints")
	}
	if n := gh.Count(fakegithub.OpAccessToken); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// What is nice to have is asked for as far as it is there, and never turns into
// everything.
func TestPermissionsIfGranted(t *testing.T) {
	t.Parallel()
	_, in := installed(t, fakegithub.Options{}, "app")
	w := Want{Owner: "acme", Repos: []string{"app"}, IfGranted: map[string]string{"contents": "read", "checks": "read"}}
	got, err := in.Mint(t.Context(), w)
	if err != nil || len(got.Permissions) != 1 || got.Permissions["contents"] != "read" {
		t.Errorf("%+v, %v", got, err)
	}
	w.IfGranted = map[string]string{"checks": "read"}
	if got, err := in.Mint(t.Context(), w); errs.KindOf(err) != errs.Auth || !strings.Contains(err.Error(), "checks") {
		t.Errorf("%+v, %v", got, err)
	}
	w.Permissions = map[string]string{"contents": "write"}
	w.IfGranted = map[string]string{"contents": "read"}
	if got, err := in.Mint(t.Context(), w); err != nil || got.Permissions["contents"] != "write" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhyThereIsNoToken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		installed []string
		break_    func(*fakegithub.Server)
		want      Want
		kind      errs.Kind
		says      string
		hint      string
	}{
		"not installed":         {nil, nil, Want{"acme", []string{"app"}, nil, nil}, errs.Auth, "not installed on acme/app", "/apps/agent/installations/new"},
		"on other repositories": {[]string{"lib"}, nil, Want{"acme", []string{"app"}, nil, nil}, errs.Auth, "other repositories of acme", "/organizations/acme/settings/installations/100"},
		"one of two":            {[]string{"app"}, nil, Want{"acme", []string{"app", "lib"}, nil, nil}, errs.Auth, "app, lib of acme", "/settings/installations/"},
		"no such repository":    {[]string{}, nil, Want{"acme", []string{"none"}, nil, nil}, errs.NotFound, "no repository acme/none", "name"},
		"suspended": {
			[]string{"app"},
			func(gh *fakegithub.Server) { gh.Suspend("acme") },
			Want{"acme", []string{"app"}, nil, nil},
			errs.Auth, "suspended", "/settings/installations/",
		},
		"a permission is missing": {
			[]string{"app"},
			nil,
			Want{"acme", []string{"app"}, map[string]string{"workflows": "write"}, nil},
			errs.Auth, "no write access to workflows", "accept it at",
		},
		"no permission of that name": {[]string{"app"}, nil, Want{"acme", []string{"app"}, map[string]string{"content": "read"}, nil}, errs.Auth, "content", ""},
		"no repository":              {nil, nil, Want{"acme", nil, nil, nil}, errs.Usage, "no repository", ""},
		"a path for a name":          {nil, nil, Want{"acme", []string{"../x"}, nil, nil}, errs.Usage, "no name", "owner/name"},
		"dots for a name":            {nil, nil, Want{"acme", []string{".."}, nil, nil}, errs.Usage, "no name", "owner/name"},
		"single sign-on": {
			[]string{"app"}, func(gh *fakegithub.Server) {
				gh.Break(fakegithub.OpRepoInstallation, fakegithub.Fault{
					Status: 403, Message: "Resource protected by organization SAML enforcement.",
					Header: http.Header{"X-Github-Sso": {"required; url=https://github.com/orgs/acme/sso?x=1"}},
				})
			}, Want{"acme", []string{"app"}, nil, nil}, errs.Auth, "single sign-on", "https://github.com/orgs/acme/sso?x=1",
		},
		"a limit for an hour": {
			[]string{"app"}, func(gh *fakegithub.Server) {
				gh.Break(fakegithub.OpAccessToken, fakegithub.Fault{Status: 429, Message: "slow down", Header: http.Header{"Retry-After": {"3600"}}})
			}, Want{"acme", []string{"app"}, nil, nil}, errs.Unavailable, "limits how often", "wait",
		},
		"GitHub is down": {
			[]string{"app"}, func(gh *fakegithub.Server) {
				gh.Break(fakegithub.OpRepoInstallation, fakegithub.Fault{Status: 503, Message: "x"})
			}, Want{"acme", []string{"app"}, nil, nil}, errs.Unavailable, "503", "connection",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh, in := installed(t, fakegithub.Options{}, tt.installed...)
			if tt.installed != nil && len(tt.installed) == 0 {
				gh.Install("agent", "acme")
			}
			if tt.break_ != nil {
				tt.break_(gh)
			}
			got, err := in.Mint(t.Context(), tt.want)
			if err == nil {
				t.Fatalf("%+v", got)
			}
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%s %v (hint %q)", errs.KindOf(err), err, errs.HintOf(err))
			}
		})
	}
}

func TestTheWrongKeyMintsNothing(t *testing.T) {
	t.Parallel()
	_, in := installed(t, fakegithub.Options{}, "app")
	other := newKey(t)
	wrong, err := NewInstallations(Credentials{
		ClientID: in.c.ClientID, APIURL: in.c.APIURL, PrivateKey: secret.New(encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(other))),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Mint(t.Context(), Want{"acme", []string{"app"}, nil, nil}); errs.KindOf(err) != errs.Auth || errs.HintOf(err) == "" {
		t.Error(err)
	}
}

// Neither a wrong clock nor an old server is in the way.
func TestTokensByAnotherClockAndIssuer(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]fakegithub.Options{
		"behind":     {Clock: func() time.Time { return time.Now().Add(time.Hour) }},
		"ahead":      {Clock: func() time.Time { return time.Now().Add(-time.Hour) }},
		"old server": {IssuerIsID: true},
	} {
		_, in := installed(t, o, "app")
		got, err := in.Mint(t.Context(), Want{"acme", []string{"app"}, writing(), nil})
		if life := time.Until(got.Expires); err != nil || life < 50*time.Minute || life > 70*time.Minute {
			t.Errorf("%s: good for %s, %v", name, life, err)
		}
	}
}

func TestASourceMintsOnceAndAgainBeforeTheEnd(t *testing.T) {
	t.Parallel()
	gh, in := installed(t, fakegithub.Options{}, "app")
	s := in.Source(Want{"acme", []string{"app"}, writing(), nil})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := s.Token(t.Context()); err != nil || got.Empty() {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first, _ := s.Token(t.Context())
	if n := gh.Count(fakegithub.OpAccessToken); n != 1 {
		t.Errorf("%d tokens", n)
	}
	if left := time.Until(s.renewal); left < 40*time.Minute || left > 50*time.Minute {
		t.Errorf("renewed in %s", left)
	}
	s.renewal = time.Now()
	second, err := s.Token(t.Context())
	if err != nil || second == first {
		t.Errorf("the same token: %v", err)
	}
	gh.Break(fakegithub.OpAccessToken, fakegithub.Fault{Status: 422, Message: "x"})
	s.renewal = time.Now()
	if third, err := s.Token(t.Context()); err != nil || third != second {
		t.Errorf("the old token is still good: %v", err)
	}
	s.Forget()
	if _, err := s.Token(t.Context()); err == nil {
		t.Error("a forgotten token was handed out")
	}
}

// Tokens that live for two seconds are renewed all the time, and never handed out
// when they are over.
func TestAShortLife(t *testing.T) {
	t.Parallel()
	gh, in := installed(t, fakegithub.Options{TokenLife: 2 * time.Second}, "app")
	s := in.Source(Want{"acme", []string{"app"}, writing(), nil})
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); {
		if _, err := s.Token(t.Context()); err != nil || time.Now().After(s.now.Expires) {
			t.Fatalf("%v: %s", err, s.now.Expires)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	if n := gh.Count(fakegithub.OpAccessToken); n < 2 {
		t.Errorf("%d tokens", n)
	}
}

// A repository may have another name by now: GitHub says so by number, or by name.
func TestATokenForARenamedRepository(t *testing.T) {
	t.Parallel()
	gh, in := installed(t, fakegithub.Options{}, []string{}...)
	repo := gh.AddRepo("acme", "old")
	gh.Install("agent", "acme")
	gh.Rename(repo, "new")
	if _, err := in.Mint(t.Context(), Want{Owner: "acme", Repos: []string{"old"}, Permissions: writing()}); err != nil {
		t.Fatal(err)
	}
	w := Want{Repos: []string{"old"}}
	for at, want := range map[string]string{
		"/repos/acme/old/installation": "[old] []", "/repos/acme/new/installation": "[new] []", "/api/v3/repositories/17/installation": "[] [17]",
		"/repositories/x/installation": "[old] []", "": "[old] []",
	} {
		names, ids := w.today(at)
		if got := fmt.Sprint(names, ids); got != want {
			t.Errorf("%s: %s", at, got)
		}
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	gh, in := installed(t, fakegithub.Options{}, "app")
	got, err := in.Mint(t.Context(), Want{Owner: "acme", Repos: []string{"app"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // one that has ended is fine
		if err := Revoke(t.Context(), gh.URL+"/api/v3", got.Value, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, revoked := gh.Tokens(); len(revoked) != 1 || revoked[0] != got.Value.Reveal() {
		t.Errorf("%d revoked", len(revoked))
	}
	gh.Break(fakegithub.OpRevokeToken, fakegithub.Fault{Status: http.StatusBadGateway})
	if err := Revoke(t.Context(), gh.URL+"/api/v3", got.Value, nil); errs.KindOf(err) != errs.Unavailable || strings.Contains(err.Error(), got.Value.Reveal()) {
		t.Error(err)
	}
}
