package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// Applied tells what Apply did.
type Applied struct {
	Top   string   // the working tree
	Files []string // below Top, that were written or removed
}

// Apply brings what repository n of a run became into the working tree that holds
// dir, beside whatever changed there since: a three-way merge with the run's base.
// Only files are written, never the index. When both sides changed the same lines
// the error names the files and nothing was touched.
func (c *Cache) Apply(ctx context.Context, run task.ID, n int, dir string) (Applied, error) {
	bare, err := c.captured(ctx, run, n)
	if err != nil {
		return Applied{}, err
	}
	s, err := c.open(ctx, dir)
	if err != nil {
		return Applied{}, err
	}
	if s.top == "" {
		return Applied{}, errs.New("repo.Apply", errs.Usage, "give the path of a working tree", "%q is a bare repository", dir)
	}
	out := Applied{Top: s.top}
	m := merge{bare: bare, objects: filepath.Join(bare, "objects"), src: s, run: run}
	patch, files, err := c.mergePatch(ctx, m)
	if err != nil || len(files) == 0 {
		return out, err
	}
	written := append(missingDirs(s.top, files), files...)
	if err := c.applyPatch(ctx, s, patch); err != nil {
		return out, err
	}
	out.Files = files
	return out, keepOwner(s.top, written)
}

// merge is one application of changes to a working tree.
type merge struct {
	bare, objects string
	src           *source
	run           task.ID
}

// mergePatch merges the working tree as it is with the changes and returns the
// patch that leads from the one to the other, and the files in it.
func (c *Cache) mergePatch(ctx context.Context, m merge) (patch []byte, files []string, err error) {
	_, now, err := c.trees(ctx, m.src, m.objects)
	if err != nil {
		return nil, nil, err
	}
	git := func(args ...string) call {
		return call{
			gitDir: m.bare, args: args, bound: longBound,
			env: []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoteAll(m.src.objects), string(os.PathListSeparator))},
		}
	}
	merged, err := c.mergeTrees(ctx, m, git, now)
	if err != nil {
		return nil, nil, err
	}
	names, err := c.git.text(ctx, git("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=all", now, merged))
	if err != nil {
		return nil, nil, fmt.Errorf("compare trees: %w", err)
	}
	files = uniquePaths(names)
	var out limited
	out.left = defaultMaxPack
	diff := git("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=all", now, merged)
	diff.out = &out
	if err := c.git.run(ctx, diff); err != nil {
		return nil, nil, fmt.Errorf("compare trees: %w", err)
	}
	return out.buf.Bytes(), files, nil
}

// mergeTrees merges the tree now with the captured one. The base of the run stands
// in as the parent of both, so that git takes it for what they have in common.
func (c *Cache) mergeTrees(ctx context.Context, m merge, git func(...string) call, now string) (string, error) {
	base, err := c.git.text(ctx, git("rev-parse", "--verify", "refs/insights/base^{commit}"))
	if err != nil {
		return "", fmt.Errorf("read base: %w", err)
	}
	theirs, err := c.git.text(ctx, git("rev-parse", "--verify", RefPrefix+string(m.run)+"^{tree}"))
	if err != nil {
		return "", fmt.Errorf("read changes: %w", err)
	}
	var sides [2]string
	for i, tree := range []string{now, theirs} {
		if sides[i], err = c.commitTree(ctx, git(), tree, base, "merge"); err != nil {
			return "", err
		}
	}
	out, err := c.git.text(ctx, git("-c", "merge.renames=true", "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", sides[0], sides[1]))
	parts := uniquePaths(out)
	switch {
	case err == nil && len(parts) == 1 && isObjectID(parts[0]):
		return parts[0], nil
	case exitCode(err) == 1 && len(parts) > 1:
		return "", errs.New("repo.Apply", errs.Conflict,
			"commit or put away your changes to them, or merge refs/insights/"+string(m.run)+" yourself",
			"the changes do not apply: %s", listFiles(parts[1:]))
	case err == nil:
		err = fmt.Errorf("git answered %q", clip(out))
	}
	return "", fmt.Errorf("merge changes: %w", err)
}

// listFiles names a few files.
func listFiles(files []string) string {
	const show = 5
	if len(files) > show {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:show], ", "), len(files)-show)
	}
	return strings.Join(files, ", ")
}

// applyPatch writes the files. Git checks the whole patch before it writes the
// first one, and does so through a view: no filter of the repository's runs.
func (c *Cache) applyPatch(ctx context.Context, s *source, patch []byte) error {
	v, err := c.view(s)
	if err != nil {
		return err
	}
	defer func() { _ = RemoveAll(v.dir) }() // in our own cache
	apply := v.call("apply", "--binary", "--whitespace=nowarn", "-")
	apply.in = bytes.NewReader(patch)
	err = c.git.run(ctx, apply)
	if exitCode(err) > 0 {
		return errs.New("repo.Apply", errs.Conflict, "move the file away, or apply the output of insightscli diff yourself",
			"the changes do not apply: %w", err)
	}
	return err
}

// missingDirs lists the directories above the files that are not there yet.
func missingDirs(top string, files []string) []string {
	seen := map[string]bool{".": true}
	var out []string
	for _, f := range files {
		for p := filepath.Dir(filepath.FromSlash(f)); !seen[p]; p = filepath.Dir(p) {
			seen[p] = true
			if _, err := os.Lstat(filepath.Join(top, p)); errors.Is(err, os.ErrNotExist) {
				out = append(out, p)
			}
		}
	}
	return out
}

// keepOwner gives what root wrote in somebody's tree to that somebody.
func keepOwner(top string, written []string) error {
	fi, err := os.Stat(top)
	if err != nil {
		return fmt.Errorf("look at the tree: %w", err)
	}
	own, ok := ownerOf(fi)
	if !ok || own.uid == os.Geteuid() {
		return nil
	}
	for _, p := range written {
		if err := chown(filepath.Join(top, p), own); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("give the files to the owner of the tree: %w", err)
		}
	}
	return nil
}
