package cifollow

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
	"github.com/Insights/insightscli/internal/secret"
)

const (
	op       = "cifollow.Look"
	perPage  = 100
	maxPages = 5
)

// Reader reads GitHub. It may be used by several goroutines.
type Reader struct {
	APIURL string // "" is that of github.com
	// Token is asked for before every request: one that reads pull requests, checks,
	// statuses and actions of the repository, as far as it was granted. Refused is told
	// when GitHub does not take it any more; it may be nil.
	Token   func(ctx context.Context, org, name string) (secret.String, error)
	Refused func(org, name string)

	Client *http.Client                               // nil is one with a time limit
	Notify func(string)                               // told of waits; nil is nobody
	Pause  func(context.Context, time.Duration) error // nil is a timer
}

var _ GitHub = (*Reader)(nil)

// look is one look at one pull request.
type look struct {
	http    *http.Client
	rest    *github.Client
	graphql string
	pull    Pull
}

// Look implements [GitHub].
func (r *Reader) Look(ctx context.Context, org, name string, number int) (Pull, error) {
	l, err := r.begin(org, name, number)
	if err != nil {
		return Pull{}, err
	}
	if err := l.state(ctx); err != nil || l.pull.State != Open {
		return l.pull, err
	}
	for _, part := range []struct {
		permission string
		read       func(context.Context) error
	}{
		{"checks", l.checks},
		{"statuses", l.statuses},
		{"actions", l.workflows},
		{"pull_requests", l.reviews},
		{"pull_requests", l.threads},
	} {
		switch err := part.read(ctx); {
		case hidden(err):
			l.pull.Missing = append(l.pull.Missing, part.permission)
		case err != nil:
			return Pull{}, explain(ctx, err)
		}
	}
	return l.pull, nil
}

func (r *Reader) begin(org, name string, number int) (*look, error) {
	api := strings.TrimRight(r.APIURL, "/")
	if api == "" {
		api = "https://api.github.com"
	}
	base, err := url.Parse(api + "/")
	if err != nil || base.Host == "" {
		return nil, errs.New(op, errs.Config, "give an address such as https://api.github.com", "%q is not the address of an API", r.APIURL)
	}
	o := ghclient.Options{Base: r.Client, Notify: r.Notify, Pause: r.Pause}
	if r.Token != nil {
		o.Token = func(ctx context.Context) (secret.String, error) { return r.Token(ctx, org, name) }
	}
	if r.Refused != nil {
		o.Refused = func() { r.Refused(org, name) }
	}
	l := &look{http: ghclient.New(o), graphql: api + "/graphql", pull: Pull{Org: org, Name: name, Number: number}}
	if server, ok := strings.CutSuffix(api, "/api/v3"); ok {
		l.graphql = server + "/api/graphql"
	}
	l.rest = github.NewClient(l.http)
	l.rest.BaseURL, l.rest.UserAgent = base, "insightscli"
	return l, nil
}

// state reads the pull request itself.
func (l *look) state(ctx context.Context) error {
	p := &l.pull
	got, _, err := l.rest.PullRequests.Get(ctx, p.Org, p.Name, p.Number)
	if err != nil {
		return explain(ctx, err)
	}
	p.URL, p.Branch, p.Head, p.State = got.GetHTMLURL(), got.GetHead().GetRef(), got.GetHead().GetSHA(), Open
	switch {
	case got.GetMerged():
		p.State = Merged
	case got.GetState() != string(Open):
		p.State = Closed
	}
	return nil
}

// checks reads the check runs of the last commit.
func (l *look) checks(ctx context.Context) error {
	return pages(func(o github.ListOptions) (*github.Response, error) {
		got, resp, err := l.rest.Checks.ListCheckRunsForRef(ctx, l.pull.Org, l.pull.Name, l.pull.Head, &github.ListCheckRunsOptions{ListOptions: o})
		if err != nil {
			return resp, err
		}
		for _, c := range got.CheckRuns {
			l.add(c.GetName(), c.GetStatus() == "completed", c.GetConclusion(), cmp.Or(c.GetHTMLURL(), c.GetDetailsURL()), c.GetOutput().GetSummary())
		}
		return resp, nil
	})
}

// statuses reads what the older kind of CI says of the last commit.
func (l *look) statuses(ctx context.Context) error {
	return pages(func(o github.ListOptions) (*github.Response, error) {
		got, resp, err := l.rest.Repositories.GetCombinedStatus(ctx, l.pull.Org, l.pull.Name, l.pull.Head, &o)
		if err != nil {
			return resp, err
		}
		for _, s := range got.Statuses {
			l.add(s.GetContext(), s.GetState() != "pending", s.GetState(), s.GetTargetURL(), s.GetDescription())
		}
		return resp, nil
	})
}

// workflows reads the workflows of the last commit, for those that have no check run: they
// have not begun to, or could not.
func (l *look) workflows(ctx context.Context) error {
	got, _, err := l.rest.Actions.ListRepositoryWorkflowRuns(ctx, l.pull.Org, l.pull.Name, &github.ListWorkflowRunsOptions{
		HeadSHA: l.pull.Head, ListOptions: github.ListOptions{PerPage: perPage},
	})
	if err != nil {
		return err
	}
	for _, run := range got.WorkflowRuns {
		if over := run.GetStatus() == "completed"; !over || run.GetConclusion() == "startup_failure" {
			l.add(run.GetName(), over, run.GetConclusion(), run.GetHTMLURL(), "")
		}
	}
	return nil
}

// add adds a check.
func (l *look) add(name string, over bool, says, url, summary string) {
	c := Check{Name: name, Says: says, URL: url, Summary: summary}
	switch says {
	case "failure", "error", "timed_out", "startup_failure":
		c.Outcome = Failed
	default:
		c.Outcome = Fine
	}
	if !over {
		c.Outcome = Pending
	}
	l.pull.Checks = append(l.pull.Checks, c)
}

// reviews reads who asks for changes.
func (l *look) reviews(ctx context.Context) error {
	var all []verdict
	err := pages(func(o github.ListOptions) (*github.Response, error) {
		got, resp, err := l.rest.PullRequests.ListReviews(ctx, l.pull.Org, l.pull.Name, l.pull.Number, &o)
		for _, r := range got {
			all = append(all, verdict{Review{r.GetID(), r.GetUser().GetLogin(), r.GetBody()}, r.GetState(), r.GetAuthorAssociation()})
		}
		return resp, err
	})
	l.pull.Reviews = lastWords(all)
	return err
}

// pages reads a list, page by page.
func pages(read func(github.ListOptions) (*github.Response, error)) error {
	o := github.ListOptions{PerPage: perPage}
	for range maxPages {
		resp, err := read(o)
		if err != nil || resp.NextPage == 0 {
			return err
		}
		o.Page = resp.NextPage
	}
	return nil
}

// hidden reports whether an error says that a permission is missing, of a part of a pull
// request that is there: GitHub may also say that it knows nothing of it.
func hidden(err error) bool {
	var e *github.ErrorResponse
	var q *queryError
	switch {
	case errors.As(err, &e) && e.Response != nil:
		return e.Response.StatusCode == http.StatusNotFound ||
			e.Response.StatusCode == http.StatusForbidden && strings.Contains(e.Message, "not accessible by") && ghclient.SSO(e.Response.Header) == ""
	case errors.As(err, &q):
		return q.kind == "FORBIDDEN" || q.kind == "INSUFFICIENT_SCOPES"
	}
	return false
}

// explain says what stands in the way of reading.
func explain(ctx context.Context, err error) error {
	var known *errs.Error
	if errors.As(err, &known) {
		return err // of the source of tokens
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var e *github.ErrorResponse
	var u *url.Error
	switch {
	case errors.As(err, &e) && e.Response != nil:
		return refused(e)
	case errors.As(err, &u):
		err = u.Err // without the address
	}
	return errs.New(op, errs.Unavailable, "check the connection to GitHub", "read the pull request: %w", err)
}

func refused(e *github.ErrorResponse) error {
	page := ghclient.SSO(e.Response.Header)
	switch s := e.Response.StatusCode; {
	case page != "":
		return errs.New(op, errs.Auth, "authorize the token at "+page, "read the pull request: the organization asks for single sign-on")
	case s == http.StatusNotFound, s == http.StatusGone:
		return errs.New(op, errs.NotFound, "", "the pull request is not on GitHub, or not for this token")
	case s == http.StatusForbidden && hidden(e):
		return errs.New(op, errs.Auth, "give the GitHub App the permission pull_requests", "the GitHub App or token has no permission to read pull_requests")
	case s == http.StatusUnauthorized, s == http.StatusForbidden && !strings.Contains(e.Message, "rate limit"):
		return errs.New(op, errs.Auth, "check the GitHub App", "read the pull request: GitHub refuses: %d %s", s, e.Message)
	}
	return errs.New(op, errs.Unavailable, "", "read the pull request: GitHub answers %d %s", e.Response.StatusCode, e.Message)
}
