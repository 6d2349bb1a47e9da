package cli

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// What opens a run's repositories is sealed with the run, and in nothing that is shown.
func TestKeysOfRepositoriesAreSealedWithTheRun(t *testing.T) {
	environ := []string{
		"GITHUB_APP_CLIENT_ID=Iv1.abc", "GITHUB_APP_CLIENT_SECRET=canary-secret", "GITHUB_APP_SLUG=my-app",
		"GITHUB_APP_PRIVATE_KEY=canary-key", "GITHUB_TOKEN=canary-two", "GH_TOKEN=canary-one",
	}
	for address, want := range map[string]githubKeys{
		"org/repo": {clientID: "Iv1.abc", slug: "my-app", key: secret.New("canary-key"), token: secret.New("canary-one")},
		"./here":   {},
	} {
		streams, _, stdout, stderr := term.Test()
		var got githubKeys
		a := fakeApp(Process{Streams: streams, Args: []string{"run", "--repo", address, "--", "true"}, Dir: t.TempDir(), Environ: environ},
			func(_ context.Context, s task.Spec, secrets map[string]secret.String, sink task.Sink) (task.Result, error) {
				got = unsealGitHubKeys(secrets)
				return finished(task.Result{}, sink)
			})
		if code := a.main(t.Context()); code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
		if got.clientID != want.clientID || got.slug != want.slug || got.key.Reveal() != want.key.Reveal() || got.token.Reveal() != want.token.Reveal() {
			t.Errorf("%s: %q %q %q %q", address, got.clientID, got.slug, got.key.Reveal(), got.token.Reveal())
		}
		a.process.Args = []string{"run", "--dry-run", "--repo", address, "--", "true"}
		if code := a.main(t.Context()); code != 0 || strings.Contains(stdout.String()+stderr.String(), "canary") {
			t.Errorf("code %d, %s%s", code, stdout, stderr)
		}
	}
}

func TestAnIncompleteAppIsNone(t *testing.T) {
	var c config.Config
	c.Account.GitHubClientID, c.Account.GitHubSlug, c.Account.GitHubPrivateKey = "Iv1.x", "s", secret.New("k")
	c.Account.GitHubToken = secret.New("t")
	if a := githubKeysOf(c).access(config.Machine{}, nil); a.App != nil || a.Token.Reveal() != "t" {
		t.Fatalf("access %+v", a)
	}
}

// A key that is no key matters when the App is asked, not before.
func TestABrokenAppIsToldWhenItIsAsked(t *testing.T) {
	a := githubKeys{clientID: "Iv1.x", slug: "s", key: secret.New("none")}.access(config.Machine{}, nil)
	if _, _, err := a.App.Token(t.Context(), "o", "r"); errs.KindOf(err) != errs.Config {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	a = githubKeys{clientID: "Iv1.x", slug: "s", key: secret.New(string(text))}.access(config.Machine{}, nil)
	if r, ok := a.App.(readers); !ok || r.err != nil || a.AppSlug != "s" {
		t.Fatalf("access %+v", a)
	}
}

// A file that may have come with a repository does not lead the user's own keys elsewhere.
func TestKeysGoToTheGitHubOfTheUser(t *testing.T) {
	app := []string{"GITHUB_APP_CLIENT_ID=Iv1.a", "GITHUB_APP_CLIENT_SECRET=s", "GITHUB_APP_SLUG=x", "GITHUB_APP_PRIVATE_KEY=k"}
	other := "INSIGHTS_GITHUB_URL=https://git.example.com"
	for name, c := range map[string]struct {
		environ, file []string
		url           string
		app, token    bool
	}{
		"none":                         {append(app, "GH_TOKEN=t"), nil, "", true, true},
		"github.com":                   {append(app, "GH_TOKEN=t"), []string{"INSIGHTS_GITHUB_URL=https://www.github.com/"}, "", true, true},
		"of the environment":           {append(app, "GH_TOKEN=t", other), nil, "https://git.example.com", true, true},
		"of the project":               {append(app, "GH_TOKEN=t"), []string{other}, "https://git.example.com", false, false},
		"of the project, with the App": {[]string{"GH_TOKEN=t"}, append(app, other), "https://git.example.com", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(strings.Join(c.file, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.Load(config.LoadOptions{Environ: c.environ, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			k := githubKeysOf(loaded)
			if k.url != c.url || k.key.Empty() == c.app || k.token.Empty() == c.token {
				t.Errorf("%q, App %t, token %t", k.url, !k.key.Empty(), !k.token.Empty())
			}
			if _, said := loaded.ByProject("INSIGHTS_GITHUB_URL"); said && c.url != "" && len(foundInProject(loaded, dir)) != 1 {
				t.Errorf("%q", foundInProject(loaded, dir))
			}
			sealed := map[string]secret.String{}
			k.seal(sealed)
			if got := unsealGitHubKeys(sealed); got != k {
				t.Errorf("%+v", got)
			}
		})
	}
}
