package signing

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Merge brings another commit into a branch.
type Merge struct {
	Repo         Repo
	Branch, Base string // as in Request
	// Bare holds both sides.
	Bare     string
	Expected string // the commit that the branch must be at
	From     string // the commit on GitHub that is brought in
	// Tree is the result, where somebody resolved the conflicts; "" lets git find it.
	Tree          string
	Message, Body string
}

// Merge makes a commit with two parents on GitHub and moves the branch to it. The
// branches are merged here, in the bare repository.
func (c *Client) Merge(ctx context.Context, m Merge) (Result, error) {
	const op = "signing.Merge"
	r := Request{
		Repo: m.Repo, Branch: m.Branch, Base: m.Base, Bare: m.Bare, Tree: m.Tree, Parents: []string{m.Expected, m.From},
		Expected: m.Expected, Message: m.Message, Body: m.Body,
	}
	if err := checkOIDs(op, m.Expected, m.From); err != nil {
		return Result{}, err
	}
	if r.Tree == "" {
		r.Tree = m.From // of the right form; the real one comes below
	}
	if err := r.check(op); err != nil {
		return Result{}, err
	}
	p, err := c.open(ctx, op, r.Repo, r.Branch, r.Base)
	if err != nil {
		return Result{}, c.advise(err)
	}
	if p.tip == nil {
		return Result{}, errs.New(op, errs.NotFound, "publish it with git_signed_commit first", "there is no branch %s to merge into: %w", r.Branch, ErrNoBranch)
	}
	inside, err := c.git.descends(ctx, m.Bare, m.Expected, m.From)
	if err != nil {
		return Result{}, err
	}
	if inside {
		return Result{SHA: p.tip.oid, URL: p.tip.url, Verified: p.tip.signed, Unchanged: true, Warnings: p.warnings}, nil
	}
	if m.Tree == "" {
		if r.Tree, err = c.git.merge(ctx, op, m.Bare, m.Expected, m.From); err != nil {
			return Result{}, err
		}
	}
	got, err := c.publish(ctx, op, p, r)
	return got, c.advise(err)
}

// merge returns the tree of two commits, merged.
func (g *git) merge(ctx context.Context, op, bare, ours, theirs string) (string, error) {
	var out bytes.Buffer
	err := g.run(ctx, call{bare: bare, out: &out, args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs}})
	tree, names, _ := strings.Cut(out.String(), "\x00")
	var ended *gitError
	switch {
	case errors.As(err, &ended) && ended.code == 1:
		files := strings.Split(strings.Trim(names, "\x00"), "\x00")
		return "", errs.New(op, errs.Conflict, "rebase onto it (git rebase), resolve the conflicts, then use git_signed_rewrite",
			"%s conflict: %w", list(files), ErrMergeConflict)
	case err != nil:
		return "", err
	}
	return strings.TrimSpace(tree), nil
}
