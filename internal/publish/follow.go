package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// followBound is how long the sandbox may take to follow.
const followBound = time.Minute

// follow brings the checkout in step with what was published: its branch, what it knows
// of origin, HEAD and the index. The working tree stays as it is. Objects that the
// sandbox is said to have are not sent again.
func (j *job) follow(ctx context.Context, commit string, has ...string) {
	j.inStep(ctx, commit, func(ctx context.Context) error {
		if err := j.bring(ctx, commit, has...); err != nil {
			return err
		}
		for _, args := range [][]string{
			{"update-ref", "-m", "published", "refs/heads/" + j.branch, commit},
			{"update-ref", "-m", "published", "refs/remotes/origin/" + j.branch, commit},
			{"symbolic-ref", "-m", "published", "HEAD", "refs/heads/" + j.branch},
			{"reset", "-q"},
		} {
			if err := j.git.Must(ctx, nil, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// followMerge does the same after a merge, which changes the files of a checkout that is
// on the branch and of no other.
func (j *job) followMerge(ctx context.Context, commit string, u union) {
	if u.tree != "" {
		j.follow(ctx, commit, u.tree, u.oid, j.at.head)
		return
	}
	j.inStep(ctx, commit, func(ctx context.Context) error {
		if err := j.bring(ctx, commit, u.oid, j.at.head); err != nil {
			return err
		}
		if err := j.git.Must(ctx, nil, "update-ref", "-m", "published", "refs/remotes/origin/"+j.branch, commit); err != nil {
			return err
		}
		if j.branch == j.at.branch {
			return j.git.Must(ctx, nil, "merge", "--ff-only", "-q", commit)
		}
		was, err := j.commit(ctx, "refs/heads/"+j.branch)
		if err != nil || was == "" || was != j.tip() {
			return err // there is no such branch, or it has something else
		}
		return j.git.Must(ctx, nil, "update-ref", "-m", "published", "refs/heads/"+j.branch, commit, was)
	})
}

// inStep follows in bounded time, also where nobody waits for the answer any more. What
// goes wrong is a note: the work is published.
func (j *job) inStep(ctx context.Context, commit string, follow func(context.Context) error) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), followBound, fmt.Errorf("it took longer than %s", followBound))
	defer cancel()
	if err := follow(ctx); err != nil {
		j.notes = append(j.notes, fmt.Sprintf("it is published, but your checkout is not at %s (%s); git fetch origin, then git reset --soft origin/%s",
			short(commit), err, j.branch))
	}
}

// bring fetches a commit from GitHub and sends it into the sandbox.
func (j *job) bring(ctx context.Context, commit string, has ...string) error {
	if !j.desk.Has(ctx, commit) {
		if err := j.desk.Bring(ctx, j.branch); err != nil {
			return err
		}
	}
	if !j.desk.Has(ctx, commit) {
		return errs.New(j.op, errs.Conflict, "", "GitHub does not show the commit yet")
	}
	return j.desk.Give(ctx, j.in, j.dir, commit, append(has, j.at.head)...)
}
