package publish

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/signing"
	"github.com/Insights/insightscli/internal/task"
)

// job is one call of a tool, at work on a repository.
type job struct {
	p    *Publisher
	op   string
	repo repo.Prepared
	to   signing.Repo
	checkout

	cache  *repo.Cache
	client *signing.Client
	desk   *repo.Desk
	remote repo.Remote
	branch string // that is written to
	notes  []string
}

// begin finds the repository of a directory and waits for its turn there. Close the job.
func (p *Publisher) begin(ctx context.Context, op, cwd string) (j *job, done func(), err error) {
	repos, in, err := p.o.Workspace()
	if err != nil {
		return nil, nil, err
	}
	r, dir, err := p.find(ctx, op, repos, in, cwd)
	if err != nil {
		return nil, nil, err
	}
	j = &job{p: p, op: op, repo: r, checkout: newCheckout(op, in, dir)}
	if j.cache, err = p.o.Repos(ctx); err != nil {
		return nil, nil, err
	}
	owner, name, ok := j.cache.OnGitHub(r.Repo)
	if !ok {
		return nil, nil, errs.New(op, errs.Conflict, "tell the user, and leave the changes in the working tree: they are taken out of the sandbox",
			"%s/%s has no origin on GitHub (%s), so nothing of it can be published", r.Repo.Org, r.Repo.Name, p.o.GitHub)
	}
	j.to = signing.Repo{Owner: owner, Name: name}
	unlock, err := p.lock(ctx, r.N)
	if err != nil {
		return nil, nil, err
	}
	if err := j.look(ctx); err != nil {
		unlock()
		return nil, nil, err
	}
	return j, func() { j.close(); unlock() }, nil
}

// find finds the repository that a directory of the sandbox belongs to. A working tree
// elsewhere (git worktree add) is asked whose it is.
func (p *Publisher) find(ctx context.Context, op string, repos []repo.Prepared, in repo.Execer, cwd string) (repo.Prepared, string, error) {
	dir := cwd
	if !path.IsAbs(dir) {
		dir = path.Join(p.o.WorkDir, dir)
	}
	dir = path.Clean(dir)
	if len(dir) > 4096 || strings.ContainsRune(dir, 0) {
		return repo.Prepared{}, "", errs.New(op, errs.Usage, "", "cwd is no path")
	}
	if len(repos) == 0 {
		return repo.Prepared{}, "", errs.New(op, errs.Conflict, "", "this run has no repository")
	}
	for _, r := range repos {
		if dir == r.Repo.Dir() || strings.HasPrefix(dir, r.Repo.Dir()+"/") {
			return r, dir, nil
		}
	}
	common, code, err := repo.NewInside(in, dir).Text(ctx, 8<<10, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if ctx.Err() != nil {
		return repo.Prepared{}, "", err
	}
	var names []string
	for _, r := range repos {
		if err == nil && code == 0 && common == r.Repo.Dir()+"/.git" {
			return r, dir, nil
		}
		names = append(names, r.Repo.Dir())
	}
	return repo.Prepared{}, "", errs.New(op, errs.Usage, "give the directory of one of them as cwd: "+strings.Join(names, ", "),
		"%q is in none of the run's repositories", dir)
}

// close ends the job. A desk that cannot be removed is in the way of nothing: the next
// one replaces it, and it goes with the run.
func (j *job) close() {
	if j.desk != nil {
		_ = j.desk.Close()
	}
}

// authorize gets what may write to the repository.
func (j *job) authorize(ctx context.Context, pulls bool) error {
	c, err := j.p.o.Credential(ctx, j.to.Owner, j.to.Name, pulls)
	if err != nil {
		return err
	}
	j.client, err = j.p.client(c)
	return err
}

// aim decides which branch is written to: that of the arguments, else the current one.
func (j *job) aim(branch string) error {
	j.branch = strings.TrimPrefix(branch, "refs/heads/")
	if j.branch == "" {
		j.branch = j.at.branch
	}
	if j.branch == "" {
		return errs.New(j.op, errs.Conflict, "switch to a branch (git switch -c NAME), or name one with branch", "HEAD is detached: there is no current branch")
	}
	return nil
}

// target is the branch that the work is meant for.
func (j *job) target() string {
	if t := j.repo.Target; t != "" && j.remote.Heads[t] != "" {
		return t
	}
	return j.remote.Default
}

// upstream is the branch that the commits of the branch come after: the one that the work
// is meant for, or the default branch where that is the branch itself.
func (j *job) upstream() string {
	if t := j.target(); t != j.branch {
		return t
	}
	return j.remote.Default
}

// open makes the desk, with what GitHub has of the branch, of the one that the work is
// meant for, and of others.
func (j *job) open(ctx context.Context, others ...string) (err error) {
	if j.desk, err = j.cache.Desk(ctx, j.repo); err != nil {
		return err
	}
	want := append(others, j.branch)
	if j.repo.Target != "" {
		want = append(want, j.repo.Target)
	}
	if j.remote, err = j.desk.Fetch(ctx, want...); err != nil {
		return err
	}
	switch {
	case j.branch == j.remote.Default:
		return refuseDefault(j.op, j.branch)
	case j.tip() == "" && misleads(j.branch):
		return errs.New(j.op, errs.Usage, "choose another name; leave out origin/ and the like",
			"no branch is made that is called %q: git or a person may take it for something else", j.branch)
	}
	return nil
}

// misleads reports whether the name of a branch looks like another's: like what git calls
// something else, or with characters that are not seen.
func misleads(branch string) bool {
	first, _, _ := strings.Cut(branch, "/")
	return slices.Contains([]string{"origin", "refs", "heads", "tags", "remotes"}, first) ||
		strings.ContainsFunc(branch, func(r rune) bool { return !unicode.IsPrint(r) })
}

// tip is the commit of the branch on GitHub, or "".
func (j *job) tip() string { return j.remote.Heads[j.branch] }

// take brings objects of the sandbox to the desk.
func (j *job) take(ctx context.Context, oids ...string) error {
	return j.desk.Take(ctx, j.in, j.dir, oids...)
}

// url is the page of a commit.
func (j *job) url(oid string) string {
	return fmt.Sprintf("%s/%s/commit/%s", j.p.o.GitHub, j.to, oid)
}

// there is the result where GitHub has everything.
func (j *job) there(oid string) signing.Result {
	return signing.Result{SHA: oid, URL: j.url(oid), Unchanged: true}
}

// settled makes a success of a refusal that only says that an earlier call, whose answer
// was lost, has done the work: the tip of the branch is it.
func (j *job) settled(r signing.Result, err error, lost bool) (signing.Result, error) {
	if lost && errors.Is(err, signing.ErrMoved) {
		return j.there(j.tip()), nil
	}
	return r, err
}

// published tells what the branch is now.
func (j *job) published(r signing.Result) {
	j.p.o.Tell(task.Published{Org: j.repo.Repo.Org, Name: j.repo.Repo.Name, Branch: j.branch, SHA: r.SHA, URL: r.URL})
}
