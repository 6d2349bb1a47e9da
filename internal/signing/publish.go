package signing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

// Request is a commit to publish.
type Request struct {
	Repo   Repo
	Branch string // without refs/heads/
	// Base is the branch that the work is meant for; it is not written to. "" is none
	// but the default branch.
	Base string
	// Bare is the path of the bare repository of ours that holds Tree, Parents and
	// what they are made of.
	Bare string
	Tree string // what is staged
	// Parents are on GitHub. The first is Expected, or where a new branch begins.
	Parents []string
	// Expected is the commit that the branch must be at; "" is that it must not exist.
	Expected string
	// BaseTip is the last commit of Base, if Bare has it: changes that are its and not
	// the agent's are refused.
	BaseTip       string
	Message, Body string
}

// message is the whole message of a commit.
func message(headline, body string) string {
	headline, body = strings.TrimSpace(headline), strings.Trim(body, "\n")
	if body == "" {
		return headline
	}
	return headline + "\n\n" + body
}

func (r *Request) check(op string) error {
	if err := checkTarget(op, r.Repo, r.Branch); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(r.Message) == "" || strings.Contains(strings.TrimSpace(r.Message), "\n"):
		return errs.New(op, errs.Usage, "give the headline as message, the rest as body", "the message of a commit is one line")
	case len(r.Parents) == 0:
		return errs.New(op, errs.Usage, "", "a commit without a parent")
	case r.Expected != "" && r.Parents[0] != r.Expected:
		return errs.New(op, errs.Usage, "", "the first parent is not the commit that the branch is expected at")
	}
	return checkOIDs(op, append([]string{r.Tree}, r.Parents...)...)
}

// checkTarget refuses what is no branch of a repository, before it is in an address.
func checkTarget(op string, repo Repo, branch string) error {
	if err := repo.check(op); err != nil {
		return err
	}
	bad := branch == "" || strings.HasPrefix(branch, "-") || strings.HasPrefix(branch, "refs/") || branch == "HEAD" ||
		strings.HasSuffix(branch, "/") || strings.HasPrefix(branch, "/") || strings.HasSuffix(branch, ".lock") || strings.HasSuffix(branch, ".") ||
		strings.Contains(branch, "..") || strings.Contains(branch, "//") || strings.Contains(branch, "@{") || strings.ContainsAny(branch, " ~^:?*[\\\x7f")
	if bad || strings.ContainsFunc(branch, func(r rune) bool { return r < ' ' }) {
		return errs.New(op, errs.Usage, "give the name of a branch, without refs/heads/", "%q is no name of a branch", branch)
	}
	return nil
}

// Publish makes a commit of a tree on GitHub and moves the branch to it, or makes the
// branch. Asked again after its answer was lost it finds that the work is done.
func (c *Client) Publish(ctx context.Context, r Request) (Result, error) {
	const op = "signing.Publish"
	if err := r.check(op); err != nil {
		return Result{}, err
	}
	p, err := c.open(ctx, op, r.Repo, r.Branch, r.Base)
	if err != nil {
		return Result{}, c.advise(err)
	}
	got, err := c.publish(ctx, op, p, r)
	return got, c.advise(err)
}

// open looks at a branch and refuses those that are not written to.
func (c *Client) open(ctx context.Context, op string, repo Repo, branch, base string) (*place, error) {
	p, err := c.look(ctx, op, repo, branch, branch == base)
	if err != nil {
		return nil, err
	}
	switch {
	case p.main == "":
		return nil, errs.New(op, errs.Conflict, "push a first commit to the repository yourself", "%s has no default branch to tell from others: %w", p.repo, ErrUnknownBranch)
	case branch == p.main:
		return nil, errs.New(op, errs.Conflict, "make a branch (git switch -c NAME), then try again", "nothing is published to %s: %w", branch, ErrDefaultBranch)
	case branch == base && len(p.bases) != 1:
		return nil, errs.New(op, errs.Conflict, "make a branch (git switch -c NAME), then try again",
			"nothing is published to %s, which heads %d open pull requests: %w", branch, len(p.bases), ErrBaseBranch)
	}
	return p, nil
}

func (c *Client) publish(ctx context.Context, op string, p *place, r Request) (Result, error) {
	text := message(r.Message, r.Body)
	if c.o.UserToken && r.Expected == "" && p.tipOID() == r.Parents[0] {
		r.Expected = r.Parents[0] // made for this commit, which then failed
	}
	if done := p.tip; done != nil && done.tree == r.Tree && slices.Equal(done.parents, r.Parents) && done.message == text && done.signed {
		return Result{SHA: done.oid, URL: done.url, Verified: true, Unchanged: true, Commits: []Commit{{done.oid, done.url}}, Warnings: p.warnings}, nil
	}
	if c.o.UserToken && p.tip != nil && p.tip.tree == r.Tree && p.tip.signed && isLastPart(p.tip.message, r) {
		return Result{SHA: p.tip.oid, URL: p.tip.url, Verified: true, Unchanged: true, Commits: []Commit{{p.tip.oid, p.tip.url}}, Warnings: p.warnings}, nil
	}
	if p.tipOID() != r.Expected {
		return Result{}, moved(op, r.Branch, p.tipOID(), r.Expected)
	}
	j := &job{c: c, op: op, repo: p.repo, bare: r.Bare, warnings: p.warnings}
	all, err := j.staged(ctx, r)
	if err != nil {
		return Result{}, err
	}
	if c.o.UserToken {
		made, err := j.asUser(ctx, p, r, all)
		return j.result(made, err), err
	}
	made, err := j.publish(ctx, p, r, text, all)
	return j.result([]Commit{made}, err), err
}

// result is what was made, if a branch has it.
func (j *job) result(made []Commit, err error) Result {
	if err != nil {
		return Result{Warnings: j.warnings}
	}
	last := made[len(made)-1]
	return Result{SHA: last.SHA, URL: last.URL, Verified: true, Commits: made, Warnings: j.warnings}
}

// staged are the changes of a request, if they may be published.
func (j *job) staged(ctx context.Context, r Request) ([]change, error) {
	all, err := j.c.git.changes(ctx, j.bare, r.Parents[0], r.Tree)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 && len(r.Parents) == 1 {
		return nil, Nothing(j.op)
	}
	if err := checkPaths(j.op, all); err != nil {
		return nil, err
	}
	if len(r.Parents) == 1 && r.BaseTip != "" {
		err = j.checkLeak(ctx, r, all)
	}
	return all, err
}

// publish does what cannot be seen, then moves the branch.
func (j *job) publish(ctx context.Context, p *place, r Request, text string, all []change) (Commit, error) {
	blobs, err := j.c.git.newBlobs(ctx, j.bare, all)
	if err != nil {
		return Commit{}, err
	}
	defer j.sweep(ctx)
	if err := j.upload(ctx, blobs); err != nil {
		return Commit{}, err
	}
	base, err := j.c.git.tree(ctx, j.bare, r.Parents[0])
	if err != nil {
		return Commit{}, err
	}
	if err := j.makeTree(ctx, base, r.Tree, all); err != nil {
		return Commit{}, err
	}
	made, err := j.commit(ctx, r.Tree, text, r.Parents)
	if err != nil {
		return Commit{}, err
	}
	return made, j.move(ctx, p, r.Branch, made.SHA, r.Expected, false)
}

// commit makes a commit that no branch has yet, and sees that GitHub signed it.
func (j *job) commit(ctx context.Context, tree, text string, parents []string) (Commit, error) {
	in := &github.Commit{Message: github.String(text), Tree: &github.Tree{SHA: github.String(tree)}}
	for _, p := range parents {
		in.Parents = append(in.Parents, &github.Commit{SHA: github.String(p)})
	}
	got, resp, err := j.c.rest.Git.CreateCommit(ctx, j.repo.Owner, j.repo.Name, in, nil)
	if err != nil {
		return Commit{}, explain(ctx, j.op, "make the commit", headerOf(resp), err)
	}
	if got.GetTree().GetSHA() != tree || !validOID.MatchString(got.GetSHA()) {
		return Commit{}, errs.New(j.op, errs.Internal, "", "GitHub made a commit of another tree (%s)", short(got.GetTree().GetSHA()))
	}
	if v := got.GetVerification(); !v.GetVerified() {
		return Commit{}, errs.New(j.op, errs.Conflict,
			"use the token of a GitHub App's installation; on a GitHub Enterprise Server an administrator must turn on the signing of commits made on the web",
			"the branch was not touched (%s): %w", v.GetReason(), ErrUnverified)
	}
	return Commit{got.GetSHA(), got.GetHTMLURL()}, nil
}

// checkLeak refuses changes that came from the base branch by another way than a
// merge: published as the agent's they would be in the pull request twice, or undo
// what others did.
func (j *job) checkLeak(ctx context.Context, r Request, all []change) error {
	base, err := j.c.git.text(ctx, j.bare, "merge-base", r.BaseTip, r.Parents[0])
	if err != nil {
		j.warn("it was not checked whether changes of %s are among the staged ones: %s", r.Base, err)
		return ctx.Err()
	}
	theirs, err := j.c.git.changes(ctx, j.bare, r.Parents[0], r.BaseTip)
	if err != nil {
		return err
	}
	ours, err := j.c.git.changes(ctx, j.bare, base, r.Parents[0])
	if err != nil {
		return err
	}
	mine := map[string]bool{}
	for _, c := range ours {
		mine[c.path] = true
	}
	same := map[string]bool{}
	for _, c := range theirs {
		if !mine[c.path] && !c.deleted() {
			same[c.path+"\x00"+c.mode+c.oid] = true
		}
	}
	var leaked []string
	for _, c := range all {
		if same[c.path+"\x00"+c.mode+c.oid] {
			leaked = append(leaked, c.path)
		}
	}
	if len(leaked) == 0 {
		return nil
	}
	return errs.New(j.op, errs.Conflict,
		fmt.Sprintf("unstage them (git restore --staged), and bring %s in by a merge or a rebase", r.Base),
		"%d staged files are as they are on %s, and not part of this branch's work: %s: %w", len(leaked), r.Base, list(leaked), ErrBaseLeak)
}
