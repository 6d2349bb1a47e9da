package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/signing"
)

type rewriteArgs struct {
	Branch string `json:"branch"`
	Onto   string `json:"onto"`
	Cwd    string `json:"cwd"`
}

// rewrite replaces a published branch by the commits of the checkout.
func (p *Publisher) rewrite(ctx context.Context, a rewriteArgs) (string, error) {
	const op = "publish.rewrite"
	j, done, err := p.begin(ctx, op, a.Cwd)
	if err != nil {
		return "", err
	}
	defer done()
	if err := j.idle(); err != nil {
		return "", err
	}
	if err := j.aim(a.Branch); err != nil {
		return "", err
	}
	if err := j.authorize(ctx, false); err != nil {
		return "", err
	}
	if err := j.open(ctx); err != nil {
		return "", err
	}
	if j.tip() == "" {
		return "", errs.New(op, errs.NotFound, "publish it with git_signed_commit first", "there is no branch %s to rewrite: %w", j.branch, signing.ErrNoBranch)
	}
	onto, err := j.onto(ctx, a.Onto)
	if err != nil {
		return "", err
	}
	r, err := j.replay(ctx, onto)
	if err != nil {
		return "", err
	}
	j.published(r)
	j.follow(ctx, r.SHA, j.at.head)
	return j.answer(fmt.Sprintf("Rewrote %s of %s:", j.branch, j.to), r), nil
}

// onto brings the history of HEAD to the desk and finds the commit on GitHub that the
// rewritten ones come after.
func (j *job) onto(ctx context.Context, name string) (string, error) {
	if name == "" {
		if err := j.take(ctx, j.at.head); err != nil {
			return "", err
		}
		from := j.upstream()
		onto, err := j.desk.MergeBase(ctx, j.remote.Heads[from], j.at.head)
		if err == nil && onto == "" {
			err = errs.New(j.op, errs.Conflict, "name a commit with onto", "HEAD has nothing in common with %s", from)
		}
		return onto, err
	}
	onto, err := j.commit(ctx, name)
	if err != nil {
		return "", err
	}
	if onto == "" {
		return "", errs.New(j.op, errs.Usage, "name a commit of your checkout, such as origin/main", "%q is no commit", name)
	}
	if err := j.take(ctx, j.at.head, onto); err != nil {
		return "", err
	}
	on, err := j.desk.OnServer(ctx, onto)
	if err == nil && on != onto {
		err = errs.New(j.op, errs.Conflict, "name a commit that is on GitHub", "%q (%s) is not on GitHub", name, short(onto))
	}
	return onto, err
}

// replay has the commits after onto made again, in the place of what the checkout knows
// the branch to be.
func (j *job) replay(ctx context.Context, onto string) (signing.Result, error) {
	tip := j.tip()
	if tip == j.at.head {
		return j.there(tip), nil
	}
	ours, err := j.desk.Chain(ctx, onto, j.at.head)
	if err != nil {
		return signing.Result{}, err
	}
	var trees []string
	for _, c := range ours {
		trees = append(trees, c.Tree)
	}
	if err := j.desk.Fits(ctx, trees...); err != nil {
		return signing.Result{}, err
	}
	seen, err := j.commit(ctx, "refs/remotes/origin/"+j.branch)
	if err != nil {
		return signing.Result{}, err
	}
	if seen != tip {
		lost, err := j.isChain(ctx, onto, ours)
		if err != nil || lost {
			return j.there(tip), err
		}
		return signing.Result{}, refuseUnseen(j.op, j.branch, tip)
	}
	return j.client.Rewrite(ctx, signing.Rewrite{
		Repo: j.to, Branch: j.branch, Base: j.target(), Bare: j.desk.Dir(), Head: j.at.head,
		Onto: onto, BaseTip: j.remote.Heads[j.upstream()], Expected: tip, Self: repo.AgentEmail,
	})
}

// isChain reports whether the branch on GitHub is a chain of commits already, made again
// by a call whose answer was lost.
func (j *job) isChain(ctx context.Context, onto string, ours []repo.Commit) (bool, error) {
	tip := j.tip()
	after, err := j.desk.Descends(ctx, tip, onto)
	if err != nil || !after {
		return false, err
	}
	theirs, err := j.desk.Chain(ctx, onto, tip)
	if err != nil {
		return false, err
	}
	first, err := j.desk.Commit(ctx, onto)
	return err == nil && slices.Equal(steps(first.Tree, ours), steps(first.Tree, theirs)), err
}

// steps are the trees of a chain, without those that change nothing.
func steps(was string, chain []repo.Commit) []string {
	var trees []string
	for _, c := range chain {
		if c.Tree != was {
			trees = append(trees, c.Tree)
		}
		was = c.Tree
	}
	return trees
}
