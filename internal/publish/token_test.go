package publish_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/publish"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/test/fakegithub"
)

// reader reads as an app.
type reader struct{ in *ghapp.Installations }

func (r reader) Token(ctx context.Context, org, name string) (secret.String, time.Time, error) {
	t, err := r.in.Mint(ctx, ghapp.Want{Owner: org, Repos: []string{name}, Permissions: map[string]string{"contents": "read"}})
	return t.Value, t.Expires, err
}

// Tokens that live for two seconds, and some that are revoked before, are renewed.
func TestTokensOfTwoSeconds(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	var in *ghapp.Installations
	w := newWorld(t, setup{
		options: func(o *publish.Options) {
			o.Credential = func(_ context.Context, owner, name string, pulls bool) (publish.Credential, error) {
				want := map[string]string{"contents": "write"}
				if pulls {
					want["pull_requests"] = "write"
				}
				s := in.Source(ghapp.Want{Owner: owner, Repos: []string{name}, Permissions: want})
				return publish.Credential{Token: s.Token, Refused: s.Forget}, nil
			}
		},
	})
	app := w.gh.AddApp("agent", "acme", key, everything())
	w.gh.Install("agent", "acme")
	in, err = ghapp.NewInstallations(ghapp.Credentials{ClientID: app.ClientID, PrivateKey: secret.New(string(text)), APIURL: w.gh.URL + "/api/v3"})
	w.must(err)
	w.cache = w.cache.With(repo.Access{GitHub: w.gh.URL, App: reader{in}, GH: "/none"})
	w.gh.SetTokenLife(2 * time.Second)
	w.gh.Before(func(_ string, n int) *fakegithub.Fault {
		if n%5 == 0 {
			w.gh.Revoke()
		}
		return nil
	})
	w.start("fix")
	w.do("create_pull_request", args{"title": "Fix"})
	if n := w.gh.Count(fakegithub.OpAccessToken); n < 3 {
		t.Errorf("%d tokens", n)
	}
}

// Without anything to publish with, the tools say how to get it.
func TestNoCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{options: func(o *publish.Options) {
		o.Credential = func(context.Context, string, string, bool) (publish.Credential, error) {
			return publish.Credential{}, errs.New("x", errs.Auth, "insightscli create-github-app", "no GitHub credential")
		}
	}})
	w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
	w.refused("git_signed_commit", args{"message": "x"}, "no GitHub credential", "insightscli create-github-app")
	w.refused("create_pull_request", args{"title": "x"}, "no GitHub credential")
	if got := w.sh("git status --porcelain"); !strings.HasPrefix(got, "M ") {
		t.Error(got)
	}
}
