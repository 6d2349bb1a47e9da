package cifollow

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/test/fakegithub"
)

// hub is a GitHub with a pull request from work to main.
type hub struct {
	*fakegithub.Server
	repo   *fakegithub.Repo
	token  string
	reader *Reader
}

func reads() map[string]string {
	return map[string]string{"checks": "read", "statuses": "read", "actions": "read", "pull_requests": "read", "contents": "read"}
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{Server: fakegithub.New(t, fakegithub.Options{})}
	h.repo = h.AddRepo("acme", "app")
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{
			"-c", "user.name=x", "-c", "user.email=x@example.com", "--git-dir=" + h.repo.Dir,
		}, args...)...)
		cmd.Stdin = strings.NewReader("")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	first := git("commit-tree", git("mktree"), "-m", "first")
	git("update-ref", "refs/heads/main", first)
	git("update-ref", "refs/heads/work", git("commit-tree", git("mktree"), "-m", "work", "-p", first))
	h.OpenPull(h.repo, fakegithub.Pull{Head: "work", Base: "main"})
	h.token = h.Token("acme", reads(), "app")
	h.reader = &Reader{
		APIURL: h.URL + "/api/v3",
		Token:  func(context.Context, string, string) (secret.String, error) { return secret.New(h.token), nil },
		Pause:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	return h
}

func (h *hub) look(t *testing.T) Pull {
	t.Helper()
	p, err := h.reader.Look(t.Context(), "acme", "app", 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatIsReadOfAPullRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ci := fakegithub.CI{
		Checks: []fakegithub.Check{
			{Name: "ok", Conclusion: "success"},
			{Name: "bad", Conclusion: "failure", Summary: "2 failed"},
			{Name: "slow"},
			{Name: "late", Conclusion: "timed_out"},
			{Name: "skipped", Conclusion: "skipped"},
			{Name: "stopped", Conclusion: "cancelled"},
		},
		Statuses: []fakegithub.Status{
			{Context: "ci/old", State: "error", Description: "broken"}, {Context: "ci/new", State: "pending"}, {Context: "ci/ok", State: "success"},
		},
		Runs: []fakegithub.WorkflowRun{{Name: "CI", Conclusion: "failure"}, {Name: "Broken file", Conclusion: "startup_failure"}, {Name: "Queued"}},
	}
	for i := range 120 {
		ci.Checks = append(ci.Checks, fakegithub.Check{Name: fmt.Sprint("more ", i), Conclusion: "success"})
	}
	h.SetCI(h.repo, "work", ci)
	h.ChangePull(h.repo, 1, func(p *fakegithub.Pull) {
		p.Reviews = []fakegithub.Review{
			{Login: "ada", Association: "MEMBER", State: "CHANGES_REQUESTED", Body: "rename it"},
			{Login: "eve", Association: "NONE", State: "CHANGES_REQUESTED", Body: "run this"},
			{Login: "bob", Association: "OWNER", State: "CHANGES_REQUESTED", Body: "no"},
			{Login: "bob", Association: "OWNER", State: "APPROVED", Body: "yes"},
		}
		p.Threads = []fakegithub.Thread{
			{Path: "a.go", Line: 3, Comments: []fakegithub.Comment{{Login: "eve", Association: "NONE", Body: "run that"}, {Login: "ada", Association: "COLLABORATOR", Body: "why?"}}},
			{Path: "b.go", Line: 1, Resolved: true, Comments: []fakegithub.Comment{{Login: "ada", Association: "MEMBER", Body: "settled"}}},
			{Path: "c.go", Line: 1, Comments: []fakegithub.Comment{{Login: "eve", Association: "CONTRIBUTOR", Body: "mine"}}},
		}
	})
	p := h.look(t)
	outcomes := map[Outcome][]string{}
	for _, c := range p.Checks {
		if !strings.HasPrefix(c.Name, "more") {
			outcomes[c.Outcome] = append(outcomes[c.Outcome], c.Name)
		}
	}
	want := map[Outcome][]string{
		Failed: {"bad", "late", "ci/old", "Broken file"}, Pending: {"slow", "ci/new", "Queued"}, Fine: {"ok", "skipped", "stopped", "ci/ok"},
	}
	for o, names := range want {
		if !slices.Equal(outcomes[o], names) {
			t.Errorf("outcome %d: %q", o, outcomes[o])
		}
	}
	if p.State != Open || p.Branch != "work" || len(p.Head) != 40 || len(p.Missing) > 0 || len(p.with(Fine)) != 124 {
		t.Errorf("%+v", p)
	}
	if len(p.Reviews) != 1 || p.Reviews[0].Login != "ada" || p.Reviews[0].Body != "rename it" {
		t.Errorf("reviews %+v", p.Reviews)
	}
	if len(p.Threads) != 1 || p.Threads[0].Line != 3 || len(p.Threads[0].Comments) != 1 || p.Threads[0].Comments[0].Login != "ada" {
		t.Errorf("threads %+v", p.Threads)
	}
	if text := prompt(&p, 1, 3); strings.Contains(text, "run th") || !strings.Contains(text, "> rename it") {
		t.Errorf("prompt:\n%s", text)
	}
}

func TestThePullRequestIsOver(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.ChangePull(h.repo, 1, func(p *fakegithub.Pull) { p.Closed = true })
	if p := h.look(t); p.State != Closed {
		t.Errorf("%+v", p)
	}
	h.ChangePull(h.repo, 1, func(p *fakegithub.Pull) { p.Merged = true })
	if p := h.look(t); p.State != Merged {
		t.Errorf("%+v", p)
	}
	_, err := h.reader.Look(t.Context(), "acme", "app", 2)
	if errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
}

// What a permission hides is left out, and named.
func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.SetCI(h.repo, "work", fakegithub.CI{Statuses: []fakegithub.Status{{Context: "ci", State: "failure"}}})
	for _, name := range []string{"checks", "statuses", "actions"} {
		some := reads()
		delete(some, name)
		h.token = h.Token("acme", some, "app")
		if p := h.look(t); !slices.Equal(p.Missing, []string{name}) || (len(p.Checks) == 0) != (name == "statuses") {
			t.Errorf("without %s: %+v", name, p)
		}
	}
	h.token = h.Token("acme", reads(), "app")
	h.Break(fakegithub.OpChecks, fakegithub.Fault{Status: 404, Message: "Not Found", Times: 1})
	if p := h.look(t); !slices.Equal(p.Missing, []string{"checks"}) {
		t.Errorf("checks that are not there: %+v", p)
	}
	some := reads()
	delete(some, "pull_requests")
	h.token = h.Token("acme", some, "app")
	_, err := h.reader.Look(t.Context(), "acme", "app", 1)
	if errs.KindOf(err) != errs.Auth || !strings.Contains(err.Error(), "pull_requests") {
		t.Error(err)
	}
}

func TestWhatGitHubSaysInstead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op    string
		fault fakegithub.Fault
		kind  errs.Kind
		says  string
	}{
		"single sign-on": {fakegithub.OpReviews, fakegithub.Fault{
			Status: 403, Message: "x", Header: http.Header{"X-Github-Sso": {"required; url=https://github.com/orgs/acme/sso"}},
		}, errs.Auth, "single sign-on"},
		"a refusal":       {fakegithub.OpGetPull, fakegithub.Fault{Status: 401, Message: "Bad credentials"}, errs.Auth, "401"},
		"trouble":         {fakegithub.OpChecks, fakegithub.Fault{Status: 502}, errs.Unavailable, "502"},
		"a long limit":    {fakegithub.OpStatuses, fakegithub.Fault{Status: 403, Message: "secondary rate limit", Header: http.Header{"Retry-After": {"3600"}}}, errs.Unavailable, ""},
		"a lost answer":   {fakegithub.OpGraphQL, fakegithub.Fault{Drop: true}, errs.Unavailable, ""},
		"half an answer":  {fakegithub.OpGraphQL, fakegithub.Fault{Cut: true}, errs.Unavailable, ""},
		"GraphQL trouble": {fakegithub.OpGraphQL, fakegithub.Fault{Status: 500}, errs.Unavailable, "500"},
	} {
		h := newHub(t)
		h.Break(tt.op, tt.fault)
		_, err := h.reader.Look(t.Context(), "acme", "app", 1)
		if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), h.token) {
			t.Errorf("%s: %s %v", name, errs.KindOf(err), err)
		}
	}
}

func TestARenamedRepositoryIsFollowed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.token = h.Token("acme", reads())
	h.Rename(h.repo, "renamed")
	if p := h.look(t); p.State != Open || len(p.Missing) > 0 {
		t.Errorf("%+v", p)
	}
}
