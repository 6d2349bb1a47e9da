package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/signing"
)

type mergeArgs struct {
	From    string `json:"from"`
	Branch  string `json:"branch"`
	Message string `json:"message"`
	Body    string `json:"body"`
	Cwd     string `json:"cwd"`
}

// union is a merge that is to be published.
type union struct {
	from string // what it is called
	oid  string // the commit that is brought in
	tree string // what the agent made of it; "" lets git find it
}

// merge brings a branch of GitHub into a published one.
func (p *Publisher) merge(ctx context.Context, a mergeArgs) (string, error) {
	const op = "publish.merge"
	if err := checkTexts(op, a.Message, a.Body); err != nil {
		return "", err
	}
	j, done, err := p.begin(ctx, op, a.Cwd)
	if err != nil {
		return "", err
	}
	defer done()
	if j.at.busy != "merge" {
		if err := j.idle(); err != nil {
			return "", err
		}
	}
	if err := j.aim(a.Branch); err != nil {
		return "", err
	}
	if err := j.authorize(ctx, false); err != nil {
		return "", err
	}
	u, err := j.union(ctx, strings.TrimPrefix(a.From, "refs/heads/"))
	if err != nil {
		return "", err
	}
	if a.Message == "" {
		a.Message = fmt.Sprintf("Merge %s into %s", u.from, j.branch)
	}
	r, err := j.unite(ctx, u, a.Message, withTrailers(a.Body, p.o.Task))
	if err != nil {
		return "", err
	}
	j.published(r)
	j.followMerge(ctx, r.SHA, u)
	return j.answer(fmt.Sprintf("Merged %s into %s of %s:", u.from, j.branch, j.to), r), nil
}

// union finds what is to be merged: what the checkout is merging, or a branch of GitHub.
func (j *job) union(ctx context.Context, from string) (union, error) {
	var others []string
	if from != "" {
		others = append(others, from)
	}
	if err := j.open(ctx, others...); err != nil {
		return union{}, err
	}
	if j.tip() == "" {
		return union{}, errs.New(j.op, errs.NotFound, "publish it with git_signed_commit first", "there is no branch %s to merge into: %w", j.branch, signing.ErrNoBranch)
	}
	if j.at.busy == "merge" {
		return j.resolved(ctx)
	}
	if from == "" {
		from = j.upstream()
	}
	u := union{from: from, oid: j.remote.Heads[from]}
	if u.oid == "" {
		return u, errs.New(j.op, errs.NotFound, "name a branch of origin with from", "there is no branch %s on GitHub", from)
	}
	if j.branch != j.at.branch {
		return u, nil
	}
	if err := j.take(ctx, j.at.head); err != nil {
		return u, err
	}
	clean, err := j.clean(ctx)
	if err == nil && !clean {
		err = errs.New(j.op, errs.Conflict, "publish the changes with git_signed_commit, or put them aside with git stash; then try again",
			"the checkout has changes that are not published")
	}
	return u, err
}

// resolved is the merge that the agent has resolved in its checkout.
func (j *job) resolved(ctx context.Context) (union, error) {
	u := union{from: short(j.at.merge), oid: j.at.merge}
	if j.branch != j.at.branch {
		return u, errs.New(j.op, errs.Conflict, "finish that one first, or give it up (git merge --abort)",
			"a merge into %s is in progress: %w", j.at.branch, signing.ErrBusy)
	}
	if u.oid == "" {
		return u, errs.New(j.op, errs.Conflict, "give it up (git merge --abort) and begin again", "what is being merged is not known")
	}
	tree, err := j.staged(ctx)
	if err != nil {
		return u, err
	}
	u.tree = tree
	if err := j.take(ctx, tree, j.at.head, u.oid); err != nil {
		return u, err
	}
	if err := j.desk.Fits(ctx, tree); err != nil {
		return u, err
	}
	on, err := j.desk.OnServer(ctx, u.oid)
	if err == nil && on != u.oid {
		err = errs.New(j.op, errs.Conflict, "merge a branch of origin", "%s, which is being merged, is not on GitHub", short(u.oid))
	}
	for name, oid := range j.remote.Heads {
		if oid == u.oid {
			u.from = name
		}
	}
	return u, err
}

// unite publishes a merge. The checkout, if it is on the branch, must be where the branch
// is on GitHub.
func (j *job) unite(ctx context.Context, u union, message, body string) (signing.Result, error) {
	expected, lost := j.tip(), false
	if j.branch == j.at.branch && j.at.head != expected {
		last, err := j.desk.Commit(ctx, expected)
		if err != nil {
			return signing.Result{}, err
		}
		lost = slices.Equal(last.Parents, []string{j.at.head, u.oid}) && (u.tree == "" || u.tree == last.Tree)
		if !lost {
			return signing.Result{}, j.apart(ctx)
		}
		expected = j.at.head
	}
	r, err := j.client.Merge(ctx, signing.Merge{
		Repo: j.to, Branch: j.branch, Base: j.target(), Bare: j.desk.Dir(), Expected: expected, From: u.oid,
		Tree: u.tree, Message: message, Body: body,
	})
	return j.settled(r, err, lost)
}

// apart is the refusal where checkout and branch differ.
func (j *job) apart(ctx context.Context) error {
	ahead, err := j.desk.Descends(ctx, j.at.head, j.tip())
	if err != nil {
		return err
	}
	if !ahead {
		return refuseMoved(j.op, j.branch, j.tip())
	}
	return errs.New(j.op, errs.Conflict, "publish them first, with git_signed_commit (git reset --soft origin/"+j.branch+") or git_signed_rewrite",
		"your checkout has commits that are not on GitHub")
}
