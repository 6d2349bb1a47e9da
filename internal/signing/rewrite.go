package signing

import (
	"cmp"
	"context"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Rewrite is a chain of commits that takes the place of a branch, after a rebase for
// example.
type Rewrite struct {
	Repo         Repo
	Branch, Base string // as in Request
	// Bare holds the commits from Onto to Head.
	Bare string
	Head string // the last of them, as it is here
	// Onto is the commit on GitHub that they come after; "" is where Head left BaseTip.
	Onto, BaseTip string
	// Expected is the commit that the branch must be at: the lease.
	Expected string
	// Self is the agent's own address: other authors are named in the messages, since
	// GitHub's signature makes the app the author.
	Self string
}

// local is a commit that is to be made again on GitHub.
type local struct {
	oid, tree, message string
	changes            []change
}

// Rewrite makes the commits after Onto again on GitHub, one by one, and then moves the
// branch there, in one request and only from Expected. Commits that change nothing
// are left out.
func (c *Client) Rewrite(ctx context.Context, r Rewrite) (Result, error) {
	const op = "signing.Rewrite"
	if err := checkTarget(op, r.Repo, r.Branch); err != nil {
		return Result{}, err
	}
	if err := checkOIDs(op, r.Head, cmp.Or(r.Onto, r.BaseTip), r.Expected); err != nil {
		return Result{}, err
	}
	p, err := c.open(ctx, op, r.Repo, r.Branch, r.Base)
	if err != nil {
		return Result{}, c.advise(err)
	}
	switch p.tipOID() {
	case r.Expected:
	case "":
		return Result{}, errs.New(op, errs.NotFound, "publish it with git_signed_commit first", "there is no branch %s to rewrite: %w", r.Branch, ErrNoBranch)
	default:
		return Result{}, moved(op, r.Branch, p.tipOID(), r.Expected)
	}
	j := &job{c: c, op: op, repo: p.repo, bare: r.Bare, warnings: p.warnings}
	if r.Onto, err = j.onto(ctx, r); err != nil {
		return Result{}, err
	}
	chain, err := j.chain(ctx, r)
	if err != nil {
		return Result{}, err
	}
	made, err := j.rewrite(ctx, p, r, chain)
	return j.result(made, err), c.advise(err)
}

// rewrite makes the commits again and moves the branch to the last of them.
func (j *job) rewrite(ctx context.Context, p *place, r Rewrite, chain []local) ([]Commit, error) {
	if j.c.o.UserToken {
		return j.rewriteAsUser(ctx, p, r, chain)
	}
	made, err := j.replay(ctx, r, chain)
	if err != nil {
		return nil, err
	}
	return made, j.move(ctx, p, r.Branch, made[len(made)-1].SHA, r.Expected, true)
}

// onto is the commit that the rewritten ones come after.
func (j *job) onto(ctx context.Context, r Rewrite) (string, error) {
	if r.Onto != "" {
		return r.Onto, nil
	}
	onto, err := j.c.git.text(ctx, j.bare, "merge-base", r.BaseTip, r.Head)
	if err != nil {
		return "", errs.New(j.op, errs.Conflict, "name a commit with onto", "where the branch left %s is not known: %w", r.Base, err)
	}
	return onto, nil
}

// chain reads the commits after Onto.
func (j *job) chain(ctx context.Context, r Rewrite) ([]local, error) {
	after, err := j.c.git.descends(ctx, j.bare, r.Head, r.Onto)
	if err != nil {
		return nil, err
	}
	if !after {
		return nil, errs.New(j.op, errs.Conflict, "rebase the branch, or name another commit with onto", "the branch does not come after %s", short(r.Onto))
	}
	text, err := j.c.git.text(ctx, j.bare, "rev-list", "--reverse", "--topo-order", "--parents", r.Head, "^"+r.Onto, "--")
	if err != nil {
		return nil, err
	}
	was := r.Onto
	var all []local
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, errs.New(j.op, errs.Conflict, "rebase without merges (git rebase), or publish the merge with git_signed_merge",
				"%s is a merge: %w", short(f[0]), ErrMergeInRange)
		}
		one, err := j.read(ctx, r, f[0], was)
		if err != nil {
			return nil, err
		}
		if was = f[0]; len(one.changes) > 0 {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, Nothing(j.op)
	}
	return all, nil
}

func (j *job) read(ctx context.Context, r Rewrite, oid, was string) (local, error) {
	tree, err := j.c.git.tree(ctx, j.bare, oid)
	if err != nil {
		return local{}, err
	}
	about, err := j.c.git.text(ctx, j.bare, "show", "-s", "--no-show-signature", "--encoding=UTF-8", "--format=%an%x00%ae%x00%B", oid, "--")
	if err != nil {
		return local{}, err
	}
	f := strings.SplitN(about, "\x00", 3)
	if len(f) != 3 {
		return local{}, errs.New(j.op, errs.Internal, "", "git shows %q of %s", about, short(oid))
	}
	one := local{oid: oid, tree: tree, message: credit(strings.TrimSpace(strings.ToValidUTF8(f[2], "?")), f[0], f[1], r.Self)}
	if one.changes, err = j.c.git.changes(ctx, j.bare, was, oid); err != nil {
		return local{}, err
	}
	return one, checkPaths(j.op, one.changes)
}

// credit names the author of a commit in its message, unless that is the agent or an app,
// whose commits ours are.
func credit(text, name, email, self string) string {
	line := "Co-authored-by: " + name + " <" + email + ">"
	if email == "" || strings.EqualFold(email, self) || strings.Contains(email, "[bot]@") || strings.Contains(text, line) {
		return text
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if before, _, ok := strings.Cut(last, ": "); ok && !strings.Contains(before, " ") && strings.Contains(text, "\n\n") {
		return text + "\n" + line // there are trailers
	}
	return text + "\n\n" + line
}

// replay makes the commits, one after the other.
func (j *job) replay(ctx context.Context, r Rewrite, chain []local) ([]Commit, error) {
	var sets [][]change
	for _, one := range chain {
		sets = append(sets, one.changes)
	}
	blobs, err := j.c.git.newBlobs(ctx, j.bare, sets...)
	if err != nil {
		return nil, err
	}
	defer j.sweep(ctx)
	if err := j.upload(ctx, blobs); err != nil {
		return nil, err
	}
	tree, err := j.c.git.tree(ctx, j.bare, r.Onto)
	if err != nil {
		return nil, err
	}
	parent := r.Onto
	var made []Commit
	for _, one := range chain {
		if err := j.makeTree(ctx, tree, one.tree, one.changes); err != nil {
			return nil, err
		}
		done, err := j.commit(ctx, one.tree, one.message, []string{parent})
		if err != nil {
			return nil, err
		}
		made = append(made, done)
		parent, tree = done.SHA, one.tree
	}
	return made, nil
}
