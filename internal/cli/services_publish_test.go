package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/publish"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakegithub"
)

// credential is what the run publishes with.
func (f *following) credential(pulls bool) (publish.Credential, error) {
	f.t.Helper()
	values, err := f.services.secrets.All(f.t.Context(), f.spec.Run)
	if err != nil {
		f.t.Fatal(err)
	}
	w := &writers{services: f.services, run: f.spec.Run, github: unsealGitHubKeys(values), notify: func(string) {}, sources: map[string]*ghapp.Source{}}
	return w.credential(f.t.Context(), "org", "Repo", pulls)
}

// The App's token writes to one repository what the tool needs, and is sealed with the
// run, so that it is masked and revoked.
func TestAgentsPublishAsTheApp(t *testing.T) {
	f := newFollowing(t, map[string]secret.String{secretGitToken: secret.New("ghp_of_the_user")}, "/none")
	f.app(map[string]string{"contents": "write", "pull_requests": "write", "metadata": "read"})
	for _, pulls := range []bool{false, true} {
		c, err := f.credential(pulls)
		if err != nil || c.User {
			t.Fatalf("%+v, %v", c, err)
		}
		token, err := c.Token(t.Context())
		values, _ := f.services.secrets.All(t.Context(), f.spec.Run)
		if err != nil || values[mintedName(token)] != token {
			t.Errorf("the token is not kept with the run: %v", err)
		}
		c.Refused()
		if other, err := c.Token(t.Context()); err != nil || other == token {
			t.Errorf("a token that was refused is not replaced: %v", err)
		}
	}
	if n := f.fake.Count(fakegithub.OpAccessToken); n != 4 {
		t.Errorf("%d tokens", n)
	}
}

// A run that ends while a token is made for it leaves none that is good.
func TestTokensOfARunThatIsOverEnd(t *testing.T) {
	f := newFollowing(t, map[string]secret.String{}, "/none")
	f.app(map[string]string{"contents": "write", "metadata": "read"})
	f.fake.Before(func(op string, _ int) *fakegithub.Fault {
		if op == fakegithub.OpAccessToken {
			if err := f.services.store.Finish(t.Context(), f.spec.Run, task.Result{Run: f.spec.Run, State: task.StateCancelled}); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	c, err := f.credential(false)
	if err == nil {
		t.Errorf("a run that is over has a credential: %+v", c)
	}
	if all, revoked := f.fake.Tokens(); len(all) != 1 || !slices.Equal(all, revoked) {
		t.Errorf("%d tokens, %d revoked", len(all), len(revoked))
	}
	if values, err := f.services.secrets.All(t.Context(), f.spec.Run); err != nil || len(values) != 0 {
		t.Errorf("%d values are kept, %v", len(values), err)
	}
}

// Where the App may not write, or there is none, it is the user's own token; without one
// the App's reason is told, or how to get an App.
func TestAgentsPublishAsTheUser(t *testing.T) {
	own := map[string]secret.String{secretGitToken: secret.New("ghp_of_the_user")}
	for name, tt := range map[string]struct {
		keys        map[string]secret.String
		permissions map[string]string // of an App; nil is none
		says        string            // "" is the user's token
		hint        string
	}{
		"no App":                     {own, nil, "", ""},
		"an App that only reads":     {own, map[string]string{"contents": "read", "metadata": "read"}, "", ""},
		"nothing else than such one": {map[string]secret.String{}, map[string]string{"contents": "read", "metadata": "read"}, "no write access to contents", "give the app the permission"},
		"nothing at all":             {map[string]secret.String{}, nil, "no GitHub credential", "insightscli create-github-app"},
	} {
		f := newFollowing(t, tt.keys, "/none")
		if tt.permissions != nil {
			f.app(tt.permissions)
		}
		c, err := f.credential(false)
		if tt.says == "" {
			if err != nil || !c.User {
				t.Errorf("%s: %+v, %v", name, c, err)
			}
			continue
		}
		if errs.KindOf(err) != errs.Auth || !strings.Contains(err.Error(), tt.says) || !strings.Contains(errs.HintOf(err), tt.hint) {
			t.Errorf("%s: %v; %s", name, err, errs.HintOf(err))
		}
	}
}

// An agent is asked for a pull request where a repository is on GitHub.
func TestWhenAgentsOpenPullRequests(t *testing.T) {
	const github = "https://github.com/org/repo.git"
	elsewhere := config.Config{Account: config.Account{GitHubURL: "https://github.example.com"}}
	for name, tt := range map[string]struct {
		config        config.Config
		agent, origin string
		create, given bool
		want          bool
		kind          errs.Kind
	}{
		"by default":              {config.Config{}, task.AgentClaude, github, true, false, true, ""},
		"asked for":               {config.Config{}, task.AgentCodex, github, true, true, true, ""},
		"not wanted":              {config.Config{}, task.AgentClaude, github, false, true, false, ""},
		"not on GitHub":           {config.Config{}, task.AgentClaude, "", true, false, false, ""},
		"asked for elsewhere":     {config.Config{}, task.AgentClaude, "https://example.com/o/r.git", true, true, false, errs.Usage},
		"on another GitHub":       {elsewhere, task.AgentClaude, github, true, false, false, ""},
		"on that GitHub, by SSH":  {elsewhere, task.AgentClaude, "git@github.example.com:o/r.git", true, false, true, ""},
		"a command, which cannot": {config.Config{}, task.AgentExec, github, true, false, false, ""},
	} {
		o := &runOptions{createPR: tt.create, createPRGiven: tt.given}
		p := plan{config: tt.config, spec: task.Spec{Agent: task.Agent{Name: tt.agent}, Repos: []task.Repo{{URL: tt.origin}}}}
		err := o.freezePublish(t.Context(), &p)
		if p.spec.CreatePR != tt.want || tt.kind == "" && err != nil || tt.kind != "" && errs.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, %v", name, p.spec.CreatePR, err)
		}
	}
}
