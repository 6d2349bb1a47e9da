package signing

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

// PullRequest is a pull request to open.
type PullRequest struct {
	Repo        Repo
	Head        string // a branch of the repository
	Base        string // "" is the default branch
	Title, Body string
	Draft       bool
	Labels      []string
}

// Pull is a pull request on GitHub.
type Pull struct {
	Number   int
	URL      string
	Base     string
	Draft    bool
	Existed  bool // and was left as it is, but for the labels
	Warnings []string
}

// PullRequest opens a pull request, or returns the open one that the branch has.
func (c *Client) PullRequest(ctx context.Context, r PullRequest) (Pull, error) {
	const op = "signing.PullRequest"
	if err := checkTarget(op, r.Repo, r.Head); err != nil {
		return Pull{}, err
	}
	if strings.TrimSpace(r.Title) == "" {
		return Pull{}, errs.New(op, errs.Usage, "give it a title", "a pull request without a title")
	}
	p, err := c.look(ctx, op, r.Repo, r.Head, false)
	if err != nil {
		return Pull{}, c.advise(err)
	}
	if r.Base == "" {
		r.Base = p.main
	}
	switch {
	case p.tip == nil:
		return Pull{}, errs.New(op, errs.NotFound, "publish it with git_signed_commit first", "no pull request for %s: %w", r.Head, ErrNoBranch)
	case r.Base == "":
		return Pull{}, errs.New(op, errs.Conflict, "name the base branch", "%s: %w", p.repo, ErrUnknownBranch)
	case r.Base == r.Head:
		return Pull{}, errs.New(op, errs.Usage, "name another base branch", "a pull request from %s into itself", r.Head)
	}
	r.Repo = p.repo
	pull, err := c.openPull(ctx, op, r)
	if err != nil {
		return Pull{}, c.advise(err)
	}
	pull.Warnings = append(pull.Warnings, p.warnings...)
	if len(r.Labels) == 0 {
		return pull, nil
	}
	if err := c.label(ctx, op, r, pull.Number); err != nil {
		pull.Warnings = append(pull.Warnings, err.Error())
	}
	return pull, nil
}

// label adds labels. go-github sends a bare list, which GitHub's description of the
// request does not have any more.
func (c *Client) label(ctx context.Context, op string, r PullRequest, number int) error {
	path := fmt.Sprintf("repos/%s/issues/%d/labels", r.Repo, number)
	req, err := c.rest.NewRequest(http.MethodPost, path, map[string]any{"labels": r.Labels})
	if err != nil {
		return err
	}
	if resp, err := c.rest.Do(ctx, req, nil); err != nil {
		return explain(ctx, op, "label the pull request", headerOf(resp), err)
	}
	return nil
}

// openPull looks for an open pull request, makes one if there is none, and looks again
// where somebody else was faster or the answer was lost.
func (c *Client) openPull(ctx context.Context, op string, r PullRequest) (Pull, error) {
	if found, err := c.findPull(ctx, op, r); err != nil || found != nil {
		return existing(found), err
	}
	made, resp, err := c.rest.PullRequests.Create(ctx, r.Repo.Owner, r.Repo.Name, &github.NewPullRequest{
		Title: github.String(r.Title), Head: github.String(r.Head), Base: github.String(r.Base), Body: github.String(r.Body), Draft: github.Bool(r.Draft),
	})
	if err == nil {
		return describe(made), nil
	}
	if statusOf(err) == http.StatusUnprocessableEntity || statusOf(err) == 0 && ctx.Err() == nil {
		if found, failed := c.findPull(ctx, op, r); failed == nil && found != nil {
			return existing(found), nil
		}
	}
	said := plain(err).Error()
	switch {
	case strings.Contains(said, "No commits between"):
		return Pull{}, errs.New(op, errs.Conflict, "publish a commit with git_signed_commit first", "%s has nothing that %s does not have", r.Head, r.Base)
	case strings.Contains(said, "base is invalid"), strings.Contains(said, "base invalid"):
		return Pull{}, errs.New(op, errs.NotFound, "name another base branch", "there is no branch %s on GitHub", r.Base)
	case r.Draft && strings.Contains(strings.ToLower(said), "draft"):
		return Pull{}, errs.New(op, errs.Conflict, "ask for a pull request that is no draft", "GitHub refuses: %w", plain(err))
	}
	return Pull{}, explain(ctx, op, "open the pull request", headerOf(resp), err)
}

func (c *Client) findPull(ctx context.Context, op string, r PullRequest) (*github.PullRequest, error) {
	all, resp, err := c.rest.PullRequests.List(ctx, r.Repo.Owner, r.Repo.Name, &github.PullRequestListOptions{
		State: "open", Head: fmt.Sprintf("%s:%s", r.Repo.Owner, r.Head),
	})
	if err != nil {
		return nil, explain(ctx, op, "look for a pull request", headerOf(resp), err)
	}
	var found *github.PullRequest
	for _, p := range all {
		if p.GetHead().GetRef() != r.Head { // the answer need not heed the question
			continue
		}
		if found == nil || p.GetBase().GetRef() == r.Base {
			found = p
		}
	}
	return found, nil
}

func existing(p *github.PullRequest) Pull {
	if p == nil {
		return Pull{}
	}
	pull := describe(p)
	pull.Existed = true
	return pull
}

func describe(p *github.PullRequest) Pull {
	return Pull{Number: p.GetNumber(), URL: p.GetHTMLURL(), Base: p.GetBase().GetRef(), Draft: p.GetDraft()}
}
