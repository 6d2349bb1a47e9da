package signing

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

// limits are the ways in which GitHub says that it is asked too often.
func limits() map[string]fakegithub.Fault {
	reset := strconv.FormatInt(time.Now().Add(20*time.Second).Unix(), 10)
	limited := func(m map[string]any) { m["errors"] = []any{map[string]any{"type": "RATE_LIMITED", "message": "x"}} }
	return map[string]fakegithub.Fault{
		"a secondary limit": {Status: 403, Message: "You have exceeded a secondary rate limit", Header: http.Header{"Retry-After": {"5"}}},
		"a primary limit":   {Status: 403, Message: "x", Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {reset}}},
		"a limit of GraphQL": {
			Alter: limited, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {reset}},
		},
	}
}

// A limit is waited for, with a word, at any request; nothing is done twice.
func TestALimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, fault := range limits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []*world{newWorld(t, fakegithub.Options{}, start()), personsWorld(t, start())} {
				total := 2
				for n := 1; n <= total; n++ {
					w.reset()
					w.notices = nil
					w.gh.Before(func(op string, i int) *fakegithub.Fault {
						if i == n && (fault.Alter == nil || op == fakegithub.OpGraphQL) {
							return &fault
						}
						return nil
					})
					got, err := w.client.Publish(t.Context(), w.request(w.tree(sayable())))
					total = w.gh.Requests() - 1
					if err != nil || got.SHA != w.tip("work") {
						t.Fatalf("request %d: %+v, %v", n, got, err)
					}
					if fault.Alter == nil && (len(w.notices) != 1 || !strings.Contains(w.notices[0], "waiting")) {
						t.Errorf("request %d: notices %q", n, w.notices)
					}
				}
			}
		})
	}
}

// What happens to a repository between two requests is said as what it is.
func TestARepositoryThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	w.gh.Before(func(_ string, n int) *fakegithub.Fault {
		w.repo.Archived = n >= 2
		return nil
	})
	_, err := w.client.Publish(t.Context(), w.request(w.tree(files{"x": {"100644", "x"}})))
	if errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), "archived") || !strings.Contains(errs.HintOf(err), "unarchive") {
		t.Errorf("archived: %v (hint %q)", err, errs.HintOf(err))
	}

	w = newWorld(t, fakegithub.Options{}, start())
	w.token = w.gh.Token("acme", everything())
	w.gh.Before(func(_ string, n int) *fakegithub.Fault {
		if n == 2 {
			w.gh.Rename(w.repo, "renamed")
		}
		return nil
	})
	if got, err := w.client.Publish(t.Context(), w.request(w.tree(files{"x": {"100644", "x"}}))); err != nil || got.SHA != w.tip("work") {
		t.Errorf("renamed: %+v, %v", got, err)
	}
}

// The old name of a repository is followed, and that is told, for everything that is
// published.
func TestTheOldNameOfARepository(t *testing.T) {
	t.Parallel()
	for _, w := range []*world{newWorld(t, fakegithub.Options{}, start()), personsWorld(t, start())} {
		w.gh.Rename(w.repo, "renamed")
		if !w.client.o.UserToken {
			w.token = w.gh.Token("acme", everything(), "renamed")
		}
		got, err := w.client.Publish(t.Context(), w.request(w.tree(sayable())))
		if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "acme/renamed") {
			t.Fatalf("%+v, %v", got, err)
		}
		pull, err := w.client.PullRequest(t.Context(), PullRequest{Repo: Repo{"acme", "app"}, Head: "work", Title: "x", Labels: []string{"agent"}})
		if err != nil || len(pull.Warnings) != 1 || !strings.Contains(pull.Warnings[0], "acme/renamed") || !strings.Contains(pull.URL, "acme/renamed/pull/1") {
			t.Errorf("%+v, %v", pull, err)
		}
	}
}

// An organization with single sign-on says so at any request, and names the page.
func TestSingleSignOnAtAnyRequest(t *testing.T) {
	t.Parallel()
	page := "https://github.com/orgs/acme/sso?authorization_request=x"
	for _, w := range []*world{newWorld(t, fakegithub.Options{}, start()), personsWorld(t, start())} {
		for n := 1; n <= 2; n++ {
			w.gh.Before(func(_ string, i int) *fakegithub.Fault {
				if i != n {
					return nil
				}
				return &fakegithub.Fault{
					Status: 403, Message: "Resource protected by organization SAML enforcement.",
					Header: http.Header{"X-Github-Sso": {"required; url=" + page}},
				}
			})
			_, err := w.client.Publish(t.Context(), w.request(w.tree(files{"x": {"100644", "x"}, "vendor/lib": start()["vendor/lib"]})))
			if errs.KindOf(err) != errs.Auth || !strings.Contains(errs.HintOf(err), page) || w.tip("work") != w.base {
				t.Errorf("request %d: %v (hint %q)", n, err, errs.HintOf(err))
			}
		}
	}
}
