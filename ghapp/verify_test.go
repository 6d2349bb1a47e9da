package ghapp

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/test/fakegithub"
)

// newApp creates an app at a fake and returns what there is to check about it.
func newApp(t *testing.T, gh *fakegithub.Server) (Check, Result) {
	t.Helper()
	got := create(t, gh, Options{})
	if got.err != nil {
		t.Fatal(got.err)
	}
	r := got.result
	return Check{ClientID: r.ClientID, PrivateKey: r.PrivateKey, APIURL: gh.URL}, r
}

func TestVerifyTellsWhatTheAppIs(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	c, r := newApp(t, gh)
	got, err := Verify(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Slug != r.Slug || got.Owner != "octocat" || got.ID != r.ID || got.Permissions["contents"] != "write" || got.Skew != 0 {
		t.Errorf("%+v", got)
	}
	gh.Grant(r.Slug, map[string]string{"contents": "read", "metadata": "read", "pull_requests": "admin"})
	c.Slug, c.Owner, c.Permissions = "other", "acme", (&Options{Issues: true}).Permissions()
	got, err = Verify(t.Context(), c)
	want := []Difference{
		{"slug", r.Slug, "other"},
		{"owner", "octocat", "acme"},
		{"contents", "read", "write"},
		{"issues", "", "write"},
	}
	if err != nil || len(got.Differences) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, d := range got.Differences {
		if d != want[i] {
			t.Errorf("%+v, want %+v", d, want[i])
		}
	}
}

// A clock that is wrong by an hour is neither the key's fault nor in the way.
func TestAWrongClockIsFoundAndMadeUpFor(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{time.Hour, -time.Hour, 25 * time.Second, -5 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			gh := fakegithub.New(t, fakegithub.Options{Clock: func() time.Time { return time.Now().Add(-off) }})
			c, r := newApp(t, gh)
			got, err := Verify(t.Context(), c)
			if err != nil || got.Slug != r.Slug {
				t.Fatalf("%+v, %v", got, err)
			}
			if off.Abs() < smallSkew {
				if got.Skew != 0 {
					t.Errorf("skew %s", got.Skew)
				}
			} else if (got.Skew - off).Abs() > 5*time.Second {
				t.Errorf("skew %s, want %s", got.Skew, off)
			}
		})
	}
}

func TestAWrongClockWithAWrongKey(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{Clock: func() time.Time { return time.Now().Add(time.Hour) }})
	c, _ := newApp(t, gh)
	c.PrivateKey = secret.New(encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newKey(t))))
	_, err := Verify(t.Context(), c)
	if errs.KindOf(err) != errs.Auth || !strings.Contains(err.Error(), "behind GitHub's") {
		t.Error(err)
	}
}

func TestWhatIsWrongWithCredentials(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	c, r := newApp(t, gh)
	other := secret.New(encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newKey(t))))
	for name, tt := range map[string]struct {
		id   string
		key  secret.String
		kind errs.Kind
		says string
	}{
		"the App ID":        {"1000000", r.PrivateKey, errs.Config, "is the App ID"},
		"an OAuth app":      {"0123456789abcdef0123", r.PrivateKey, errs.Config, "no client ID of a GitHub App"},
		"nothing":           {"", r.PrivateKey, errs.Config, "no client ID"},
		"another's key":     {c.ClientID, other, errs.Auth, "could not be decoded"},
		"another client ID": {"Iv23liAAAAAAAAAAAAAA", r.PrivateKey, errs.Auth, "Iv23liAAAAAAAAAAAAAA"},
		"no key":            {c.ClientID, secret.New(""), errs.Config, "is not PEM"},
	} {
		_, err := Verify(t.Context(), Check{ClientID: tt.id, PrivateKey: tt.key, APIURL: gh.URL})
		if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || errs.HintOf(err) == "" {
			t.Errorf("%s: %s %v (hint %q)", name, errs.KindOf(err), err, errs.HintOf(err))
		}
	}
}

// GitHub may not know a new app at once.
func TestANewAppIsGivenTime(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakegithub.Fault{
		"404": {Status: 404, Message: "Integration not found", Times: 3},
		"401": {Status: 401, Message: "A JSON web token could not be decoded", Times: 3},
		"502": {Status: 502, Message: "bad gateway", Times: 5},
	} {
		gh := fakegithub.New(t, fakegithub.Options{})
		c, r := newApp(t, gh)
		gh.Break(fakegithub.OpApp, fault)
		if _, err := Verify(t.Context(), c); err == nil {
			t.Errorf("%s: an old app was given time", name)
		}
		c.Fresh = true
		pauses := 0
		got, err := verify(t.Context(), c, func(context.Context, time.Duration) error { pauses++; return nil })
		if err != nil || got.Slug != r.Slug || pauses == 0 {
			t.Errorf("%s: %+v, %v after %d pauses", name, got, err, pauses)
		}
	}
}

func TestTheWaitForANewAppEnds(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	c, _ := newApp(t, gh)
	c.Fresh = true
	gh.Break(fakegithub.OpApp, fakegithub.Fault{Status: 404, Message: "Integration not found"})
	if _, err := verify(t.Context(), c, func(context.Context, time.Duration) error { return nil }); errs.KindOf(err) != errs.Auth {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := verify(ctx, c, func(ctx context.Context, _ time.Duration) error { cancel(); return pause(ctx, time.Hour) })
	if errs.KindOf(err) != errs.Canceled {
		t.Error(err)
	}
}

// Servers before 3.14 take the App ID only.
func TestAnOldServerIsAskedAsTheAppID(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{IssuerIsID: true})
	c, r := newApp(t, gh)
	if _, err := Verify(t.Context(), c); errs.KindOf(err) != errs.Auth {
		t.Error(err)
	}
	c.AppID = r.ID
	if got, err := Verify(t.Context(), c); err != nil || got.Slug != r.Slug {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGitHubIsInTrouble(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	c, _ := newApp(t, gh)
	for name, tt := range map[string]struct {
		fault fakegithub.Fault
		kind  errs.Kind
	}{
		"rate limit": {fakegithub.Fault{Status: 403, Header: http.Header{"X-Ratelimit-Remaining": {"0"}}}, errs.Unavailable},
		"secondary":  {fakegithub.Fault{Status: 429, Message: "slow down"}, errs.Unavailable},
		"suspended":  {fakegithub.Fault{Status: 403, Message: "suspended"}, errs.Auth},
		"500":        {fakegithub.Fault{Status: 500}, errs.Unavailable},
		"cut":        {fakegithub.Fault{Cut: true}, errs.Unavailable},
	} {
		gh.Break(fakegithub.OpApp, tt.fault)
		if _, err := Verify(t.Context(), c); errs.KindOf(err) != tt.kind || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s %v", name, errs.KindOf(err), err)
		}
	}
	c.APIURL = "http://127.0.0.1:1"
	if _, err := Verify(t.Context(), c); errs.KindOf(err) != errs.Unavailable || errs.HintOf(err) == "" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Verify(ctx, c); errs.KindOf(err) != errs.Canceled {
		t.Error(err)
	}
}

func TestVerifySecret(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	_, r := newApp(t, gh)
	check := func(id, text string) error {
		return VerifySecret(t.Context(), id, secret.New(text), gh.URL, nil)
	}
	if err := check(r.ClientID, r.ClientSecret.Reveal()); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		err  error
		kind errs.Kind
		says string
	}{
		"another secret": {check(r.ClientID, "wrong"), errs.Auth, "incorrect_client_credentials"},
		"no secret":      {check(r.ClientID, ""), errs.Config, "no client secret"},
		"the App ID":     {check("1000000", r.ClientSecret.Reveal()), errs.Config, "App ID"},
	} {
		if errs.KindOf(tt.err) != tt.kind || !strings.Contains(tt.err.Error(), tt.says) || errs.HintOf(tt.err) == "" {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
	gh.Break(fakegithub.OpOAuth, fakegithub.Fault{Alter: func(a map[string]any) { a["error"] = "something new" }, Times: 1})
	if err := check(r.ClientID, r.ClientSecret.Reveal()); !errors.Is(err, errInconclusive) {
		t.Error(err)
	}
	gh.Break(fakegithub.OpOAuth, fakegithub.Fault{Status: 500})
	if err := check(r.ClientID, r.ClientSecret.Reveal()); errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
}
