package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/Insights/insightscli/internal/errs"
)

// manyEntries is by how many files a tree may grow. Ten small trees, each of ten times the
// next, stand for more than git can compare.
const manyEntries = 1_000_000

// files counts the files of a tree or a commit. More than max are counted as max+1.
func (c *Cache) files(ctx context.Context, bare, tree string, max int) (int, error) {
	n := counter{max: max}
	err := c.git.run(ctx, call{gitDir: bare, out: &n, bound: captureBound, args: []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", tree}})
	if n.n > max {
		return n.n, nil
	}
	return n.n, err
}

// counter counts NULs, and fails when there are more than max.
type counter struct{ n, max int }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	if c.n += bytes.Count(p, []byte{0}); c.n > c.max {
		c.n = c.max + 1
		return 0, errors.New("there is more than was asked for")
	}
	return len(p), nil
}

// checkGrowth refuses trees that have far more files than a commit of ours.
func (c *Cache) checkGrowth(ctx context.Context, bare, ours string, trees ...string) error {
	const all = 1 << 40
	had, err := c.files(ctx, bare, ours, all)
	if err != nil {
		return fmt.Errorf("count files: %w", err)
	}
	checked := map[string]bool{}
	for _, tree := range trees {
		if checked[tree] {
			continue
		}
		checked[tree] = true
		n, err := c.files(ctx, bare, tree, had+manyEntries)
		if err != nil {
			return fmt.Errorf("count files: %w", err)
		}
		if n > had+manyEntries {
			return errs.New("repo.checkGrowth", errs.Conflict, "", "the sandbox has added more than %d files", manyEntries)
		}
	}
	return nil
}
