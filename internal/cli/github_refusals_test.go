package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/Insights/insightscli/test/fakegithub"
)

// A repository that cannot be had is refused before anything is made, with what to do.
func TestRepositoriesThatCannotBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		before func(h *hub)
		code   int
		want   []string
	}{
		"not installed": {
			func(*hub) {}, 4,
			[]string{"repository org/Repo is private or does not exist: the GitHub App is not installed on org/Repo", "install it at URL/apps/my-app/installations/new"},
		},
		"installed on others": {
			func(h *hub) { h.fake.AddRepo("org", "other"); h.fake.Install("my-app", "org", "other") }, 4,
			[]string{"the GitHub App is installed on other repositories of org, not on org/Repo", "add the repository at URL/organizations/org/settings/installations/"},
		},
		"suspended": {
			func(h *hub) { h.fake.Install("my-app", "org"); h.fake.Suspend("org") }, 4,
			[]string{"the installation of the GitHub App is suspended", "unsuspend it at URL/organizations/org/settings/installations/"},
		},
		"single sign-on": {
			func(h *hub) {
				h.fake.Break(fakegithub.OpRepoInstallation, fakegithub.Fault{
					Status: http.StatusForbidden, Message: "Resource protected by organization SAML enforcement.",
					Header: http.Header{"X-Github-Sso": {"required; url=https://github.com/orgs/org/sso?authorization_request=A"}},
				})
			}, 4,
			[]string{"org asks for single sign-on", "authorize it at https://github.com/orgs/org/sso?authorization_request=A"},
		},
		"a limit that passes": {
			func(h *hub) {
				h.fake.Install("my-app", "org")
				h.fake.Break(fakegithub.OpRepoInstallation, fakegithub.Fault{
					Status: http.StatusTooManyRequests, Message: "You have exceeded a secondary rate limit", Header: http.Header{"Retry-After": {"1"}}, Times: 1,
				})
			}, 0,
			[]string{"GitHub limits how often it may be asked: waiting 1s"},
		},
		"a limit for hours": {
			func(h *hub) {
				h.fake.Install("my-app", "org")
				h.fake.Break(fakegithub.OpRepoInstallation, fakegithub.Fault{
					Status: http.StatusForbidden, Message: "API rate limit exceeded", Header: http.Header{"Retry-After": {"7200"}},
				})
			}, 5,
			[]string{"GitHub limits how often it may be asked", "wait a while, then try again"},
		},
		"renamed": {
			func(h *hub) { h.fake.Install("my-app", "org"); h.fake.Rename(h.repo, "new-name") }, 0,
			[]string{"repository org/repo is called org/new-name now", "URL/org/new-name.git"},
		},
		"an archived one": {
			func(h *hub) { h.fake.Install("my-app", "org"); h.fake.Archive(h.repo) }, 0, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newEmptyHub(t, fakegithub.Options{})
			h.commit("first", map[string]string{"file": "one\n"})
			c.before(h)
			cmd := h.command(t.Context(), "run", "--dry-run", "--repo", "org/Repo", "--", "true")
			out, _ := cmd.CombinedOutput() // the code says it
			text := strings.ReplaceAll(string(out), h.fake.URL, "URL")
			if cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("code %d: %s", cmd.ProcessState.ExitCode(), text)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
		})
	}
}
