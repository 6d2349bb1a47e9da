package publish

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/signing"
)

// checkout is a working tree in the sandbox.
type checkout struct {
	op  string
	in  repo.Execer
	dir string
	git repo.Inside
	at  state
}

// state is what a working tree says about itself.
type state struct {
	branch string // "" is a detached HEAD
	head   string
	busy   string // what is in progress: merge, rebase, cherry-pick or revert
	merge  string // the commit that is being merged
}

func newCheckout(op string, in repo.Execer, dir string) checkout {
	return checkout{op: op, in: in, dir: dir, git: repo.NewInside(in, dir)}
}

// look reads the state.
func (c *checkout) look(ctx context.Context) (err error) {
	if err := c.git.Must(ctx, nil, "rev-parse", "--git-dir"); err != nil {
		return err
	}
	if c.at.busy, err = c.inProgress(ctx); err != nil {
		return err
	}
	ref, code, err := c.git.Text(ctx, 4096, "symbolic-ref", "-q", "HEAD")
	if err != nil {
		return err
	}
	if code == 0 {
		c.at.branch = strings.TrimPrefix(ref, "refs/heads/")
	}
	if c.at.head, err = c.commit(ctx, "HEAD"); err != nil {
		return err
	}
	if c.at.head == "" {
		return errs.New(c.op, errs.Conflict, "switch to a branch that has a commit", "the current branch has no commit yet")
	}
	if c.at.busy == "merge" {
		c.at.merge, err = c.commit(ctx, "MERGE_HEAD")
	}
	return err
}

// commit is the commit that a name stands for, or "".
func (c *checkout) commit(ctx context.Context, name string) (string, error) {
	return c.git.OID(ctx, "rev-parse", "-q", "--verify", "--end-of-options", name+"^{commit}")
}

// inProgress looks for the marks of operations that are not finished.
func (c *checkout) inProgress(ctx context.Context) (string, error) {
	marks := []struct{ file, what string }{
		{"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
	}
	args := []string{"rev-parse", "--path-format=absolute"}
	for _, m := range marks {
		args = append(args, "--git-path", m.file)
	}
	out, code, err := c.git.Text(ctx, 32<<10, args...)
	paths := strings.Split(out, "\n")
	if err != nil || code != 0 || len(paths) != len(marks) {
		return "", err
	}
	var there bytes.Buffer
	list := wire.Command{Argv: append([]string{"ls", "-d", "--"}, paths...), Dir: "/", Env: []string{"LC_ALL=C"}}
	if _, err := c.in.Exec(ctx, list, bytes.NewReader(nil), &capped{&there, 32 << 10}, io.Discard); err != nil {
		return "", err
	}
	for i, m := range marks {
		if strings.Contains("\n"+there.String(), "\n"+paths[i]+"\n") {
			return m.what, nil
		}
	}
	return "", nil
}

// capped drops what is more than it was allowed to take.
type capped struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// idle refuses to go on in the middle of something: what is staged then is not only the
// agent's.
func (c *checkout) idle() error {
	if c.at.busy == "" {
		return nil
	}
	if c.at.busy == "merge" {
		return errs.New(c.op, errs.Conflict,
			"resolve the conflicts, stage the result (git add) and call git_signed_merge, or give it up (git merge --abort)",
			"a merge is in progress: %w", signing.ErrBusy)
	}
	return signing.Busy(c.op, c.at.busy)
}

// add stages paths, as git add does.
func (c *checkout) add(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if len(paths) > maxPaths {
		return errs.New(c.op, errs.Usage, "stage them with git add", "more than %d paths", maxPaths)
	}
	for _, p := range paths {
		if p == "" || strings.ContainsRune(p, 0) {
			return errs.New(c.op, errs.Usage, "give paths relative to cwd", "%q is no path", p)
		}
	}
	in := strings.NewReader(strings.Join(paths, "\x00"))
	if err := c.git.Must(ctx, in, "add", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
		return errs.New(c.op, errs.Conflict, "stage them with git add, and look at git status", "%w", err)
	}
	return nil
}

// staged is the tree of exactly the index.
func (c *checkout) staged(ctx context.Context) (string, error) {
	tree, err := c.git.OID(ctx, "write-tree")
	if err == nil && tree == "" {
		err = errs.New(c.op, errs.Conflict, "look at git status; resolve conflicts and stage the result with git add",
			"git cannot make a tree of the index: it has unmerged files, or is broken")
	}
	return tree, err
}

// clean reports whether the working tree and the index are as HEAD; files that git does
// not know do not count.
func (c *checkout) clean(ctx context.Context) (bool, error) {
	if _, _, err := c.git.Text(ctx, 64<<10, "update-index", "-q", "--refresh"); err != nil {
		return false, err
	}
	_, code, err := c.git.Text(ctx, 64<<10, "diff-index", "--quiet", "HEAD", "--")
	return code == 0, err
}
