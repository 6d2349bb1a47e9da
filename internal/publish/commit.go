package publish

import (
	"context"
	"fmt"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/signing"
)

type commitArgs struct {
	Message string   `json:"message"`
	Body    string   `json:"body"`
	Branch  string   `json:"branch"`
	Paths   []string `json:"paths"`
	Cwd     string   `json:"cwd"`
}

// commit publishes the index as one commit.
func (p *Publisher) commit(ctx context.Context, a commitArgs) (string, error) {
	const op = "publish.commit"
	if err := checkTexts(op, a.Message, a.Body); err != nil {
		return "", err
	}
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
	if err := j.add(ctx, a.Paths); err != nil {
		return "", err
	}
	tree, err := j.staged(ctx)
	if err != nil {
		return "", err
	}
	if err := j.open(ctx); err != nil {
		return "", err
	}
	if err := j.take(ctx, tree, j.at.head); err != nil {
		return "", err
	}
	if err := j.desk.Fits(ctx, tree); err != nil {
		return "", err
	}
	r, err := j.commitTree(ctx, tree, a.Message, withTrailers(a.Body, p.o.Task))
	if err != nil {
		return "", err
	}
	j.published(r)
	j.follow(ctx, r.SHA, tree)
	return j.answer(fmt.Sprintf("Published to %s of %s:", j.branch, j.to), r), nil
}

// commitTree publishes a tree, unless GitHub has it.
func (j *job) commitTree(ctx context.Context, tree, message, body string) (signing.Result, error) {
	where, err := j.place(ctx, tree)
	if err != nil {
		return signing.Result{}, err
	}
	if where.done {
		return j.there(j.tip()), nil
	}
	return j.client.Publish(ctx, signing.Request{
		Repo: j.to, Branch: j.branch, Base: j.target(), Bare: j.desk.Dir(), Tree: tree,
		Parents: []string{where.parent}, Expected: where.expected, BaseTip: j.remote.Heads[j.upstream()],
		Message: message, Body: body,
	})
}

// place says where a commit goes.
type place struct {
	parent, expected string
	done             bool // the branch has it
}

// place finds where a commit of a tree goes: after the branch's last commit, which the
// checkout must have, or where a new branch begins. A branch that has the tree although
// the checkout does not know it is one that an earlier call published, whose answer was
// lost.
func (j *job) place(ctx context.Context, tree string) (place, error) {
	tip := j.tip()
	if tip == "" {
		on, err := j.beginning(ctx)
		return place{parent: on}, err
	}
	last, err := j.desk.Commit(ctx, tip)
	if err != nil {
		return place{}, err
	}
	met, err := j.desk.MergeBase(ctx, j.at.head, tip)
	if err != nil {
		return place{}, err
	}
	switch {
	case met == tip:
		head, err := j.desk.Commit(ctx, j.at.head)
		return place{parent: tip, expected: tip, done: last.Tree == tree && head.Tree != tree}, err
	case met != "" && last.Tree == tree:
		return place{done: true}, nil
	}
	return place{}, refuseMoved(j.op, j.branch, tip)
}

// beginning is the commit on GitHub that a new branch begins at: HEAD, or what it came
// from if the agent has commits of its own. Those that the user has not pushed are not
// published in the agent's name.
func (j *job) beginning(ctx context.Context) (string, error) {
	on, err := j.desk.OnServer(ctx, j.at.head)
	if err != nil {
		return "", err
	}
	if on == "" {
		return "", errs.New(j.op, errs.Conflict, "begin it at a commit of origin (git switch -c NAME origin/BRANCH)",
			"nothing that the branch %s comes from is on GitHub", j.branch)
	}
	began := j.repo.Repo.Commit
	if !j.desk.Has(ctx, began) {
		return on, nil
	}
	in, err := j.desk.Descends(ctx, j.at.head, began)
	if err != nil || !in {
		return on, err
	}
	if after, err := j.desk.Descends(ctx, on, began); err != nil || after {
		return on, err
	}
	return "", refuseUnpublished(j.op, began)
}
