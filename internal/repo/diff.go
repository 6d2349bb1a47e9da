package repo

import (
	"context"
	"io"
	"os"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// DiffOptions say how changes are shown.
type DiffOptions struct {
	Color bool // for a terminal; binary files are only named then
	Stat  bool // a summary by file instead of the changes
}

// Diff writes what repository n of a run became, as a unified diff that git apply
// takes (unless it is coloured or a summary). Nothing is written when nothing was
// changed.
func (c *Cache) Diff(ctx context.Context, run task.ID, n int, o DiffOptions, w io.Writer) error {
	bare, err := c.captured(ctx, run, n)
	if err != nil {
		return err
	}
	args := []string{"-c", "core.bigFileThreshold=64m", "-c", "diff.renames=true"}
	if o.Color {
		args = append(args, "-c", "color.ui=always")
	}
	args = append(args, "diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-commit-id")
	switch {
	case o.Stat:
		args = append(args, "--stat=100", "--summary", "-M")
	case o.Color:
		args = append(args, "-p", "-M", "--color=always")
	default:
		args = append(args, "-p", "--binary", "--full-index", "--no-renames")
	}
	args = append(args, "refs/insights/base", RefPrefix+string(run))
	// Wrapped, so that git does not get a file of ours to write to: a reader that goes
	// away is an error that the caller knows.
	return c.git.run(ctx, call{gitDir: bare, out: struct{ io.Writer }{w}, bound: longBound, args: args})
}

// captured is the bare repository of a run that holds changes.
func (c *Cache) captured(ctx context.Context, run task.ID, n int) (string, error) {
	if err := c.git.ready(ctx); err != nil {
		return "", err
	}
	bare := c.BareDir(run, n)
	if _, err := os.Stat(bare); err != nil {
		return "", errs.New("repo.Diff", errs.NotFound, "", "run %s kept no changes of its repository %d", run.Short(), n)
	}
	_, err := c.git.text(ctx, call{gitDir: bare, args: []string{"rev-parse", "-q", "--verify", RefPrefix + string(run) + "^{tree}"}})
	if err != nil {
		return "", errs.New("repo.Diff", errs.NotFound, "", "run %s changed nothing in its repository %d", run.Short(), n)
	}
	return bare, nil
}
