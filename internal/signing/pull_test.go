package signing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

// withWork is a world in which work has a commit more than main.
func withWork(t *testing.T) (*world, PullRequest) {
	t.Helper()
	w := newWorld(t, fakegithub.Options{}, start())
	w.others("work")
	return w, PullRequest{Repo: Repo{"acme", "app"}, Head: "work", Title: "Change things", Body: "why", Draft: true, Labels: []string{"agent", "x y"}}
}

func TestAPullRequestIsOpenedOnce(t *testing.T) {
	t.Parallel()
	w, r := withWork(t)
	got, err := w.client.PullRequest(t.Context(), r)
	if err != nil || got.Number != 1 || got.URL != w.gh.URL+"/acme/app/pull/1" || got.Base != "main" || !got.Draft || got.Existed {
		t.Fatalf("%+v, %v", got, err)
	}
	r.Title, r.Draft, r.Labels = "Another title", false, []string{"more"}
	again, err := w.client.PullRequest(t.Context(), r)
	if err != nil || again.Number != 1 || !again.Existed || !again.Draft {
		t.Errorf("again: %+v, %v", again, err)
	}
	all := w.gh.Pulls(w.repo)
	if len(all) != 1 || all[0].Title != "Change things" || all[0].Body != "why" || !slices.Equal(all[0].Labels, []string{"agent", "x y", "more"}) {
		t.Errorf("%+v", all)
	}
}

func TestALostPullRequestIsFound(t *testing.T) {
	t.Parallel()
	for _, fault := range []fakegithub.Fault{{Lose: true}, {Lose: true, Times: 1}, {Drop: true, Times: 1}} {
		w, r := withWork(t)
		w.gh.Break(fakegithub.OpPull, fault)
		got, err := w.client.PullRequest(t.Context(), r)
		if err != nil || got.Number != 1 || len(w.gh.Pulls(w.repo)) != 1 {
			t.Errorf("%+v: %+v, %v", fault, got, err)
		}
	}
}

func TestWhatIsNoPullRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*world, *PullRequest)
		is     error
		kind   errs.Kind
		says   string
	}{
		"no title":          {func(_ *world, r *PullRequest) { r.Title = "" }, nil, errs.Usage, "title"},
		"no branch":         {func(_ *world, r *PullRequest) { r.Head = "gone" }, ErrNoBranch, errs.NotFound, "gone"},
		"into itself":       {func(_ *world, r *PullRequest) { r.Base = "work" }, nil, errs.Usage, "itself"},
		"no such base":      {func(_ *world, r *PullRequest) { r.Base = "gone" }, nil, errs.NotFound, "gone"},
		"nothing to pull":   {func(w *world, _ *PullRequest) { w.git(w.repo.Dir, "update-ref", "refs/heads/work", w.base) }, nil, errs.Conflict, "nothing that main"},
		"no default branch": {func(w *world, _ *PullRequest) { w.repo.Default = "none" }, ErrUnknownBranch, errs.Conflict, "app"},
		"an archived one":   {func(w *world, _ *PullRequest) { w.repo.Archived = true }, nil, errs.Conflict, "archived"},
		"drafts are not had": {func(w *world, _ *PullRequest) {
			w.gh.Break(fakegithub.OpPull, fakegithub.Fault{Status: 422, Message: "Draft pull requests are not supported in this repository."})
		}, nil, errs.Conflict, "Draft"},
		"without permissions": {func(w *world, _ *PullRequest) { w.token = w.gh.Token("acme", map[string]string{"contents": "write"}) }, nil, errs.Auth, "403"},
	} {
		w, r := withWork(t)
		tt.change(w, &r)
		got, err := w.client.PullRequest(t.Context(), r)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || errs.HintOf(err) == "" {
			t.Errorf("%s: %+v, %s %v (hint %q)", name, got, errs.KindOf(err), err, errs.HintOf(err))
		}
		if len(w.gh.Pulls(w.repo)) > 0 {
			t.Errorf("%s: it was opened", name)
		}
	}
}

// A label that cannot be set is no reason to lose the pull request.
func TestALabelThatFails(t *testing.T) {
	t.Parallel()
	w, r := withWork(t)
	w.gh.Break(fakegithub.OpLabels, fakegithub.Fault{Status: 403, Message: "Resource not accessible by integration"})
	got, err := w.client.PullRequest(t.Context(), r)
	if err != nil || got.Number != 1 || len(got.Warnings) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
