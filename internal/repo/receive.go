package repo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// receive checks a carrier that lies in the bare repository and makes the commit
// that stays: its tree, with the agent's commits or the base as parent. The rest of
// the carrier is not taken over.
func (c *Cache) receive(ctx context.Context, p Prepared, oid string) (string, error) {
	bare := c.BareDir(p.Run, p.N)
	ask := func(args ...string) (string, error) { return c.git.text(ctx, call{gitDir: bare, args: args}) }
	out, err := ask("rev-parse", "--verify", "--end-of-options", oid+"^{commit}")
	if err != nil || out != oid {
		return "", errs.New("repo.Capture", errs.Conflict, "", "take the changes out: the sandbox did not send what it named")
	}
	line, err := ask("rev-list", "--no-walk", "--parents", oid)
	if err != nil {
		return "", fmt.Errorf("read changes: %w", err)
	}
	tree, err := ask("rev-parse", "--verify", oid+"^{tree}")
	if err != nil {
		return "", fmt.Errorf("read changes: %w", err)
	}
	parent := p.Base
	if f := strings.Fields(line); len(f) == 2 && f[1] != p.Base {
		_, err := ask("merge-base", "--is-ancestor", p.Repo.Commit, f[1])
		switch exitCode(err) {
		case 0:
			parent = f[1]
		case 1:
		default:
			return "", fmt.Errorf("read changes: %w", err)
		}
	}
	// Everything that hangs on it must be there: index-pack has checked the objects
	// of the pack, this checks that nothing between them and the base is missing.
	err = c.git.run(ctx, call{
		gitDir: bare, out: io.Discard, bound: captureBound,
		args: []string{"rev-list", "--objects", "--quiet", oid, "--not", p.Base},
	})
	if err != nil {
		return "", errs.New("repo.Capture", errs.Conflict, "", "take the changes out: %w", err)
	}
	if err := c.checkGrowth(ctx, bare, p.Base, tree); err != nil {
		return "", err
	}
	return c.commitTree(ctx, call{gitDir: bare}, tree, parent, "insightscli run "+string(p.Run))
}

// count fills in how much was changed.
func (c *Cache) count(ctx context.Context, bare, base, commit string, res *task.RepoResult) error {
	out, err := c.git.text(ctx, call{gitDir: bare, bound: captureBound, args: []string{
		"-c", "core.bigFileThreshold=16m",
		"diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", base, commit,
	}})
	if err != nil {
		return fmt.Errorf("count changes: %w", err)
	}
	for _, line := range strings.Split(out, "\x00") {
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			continue
		}
		res.Files++
		res.Insertions += number(f[0])
		res.Deletions += number(f[1])
	}
	return nil
}

// number reads a count; a binary file has "-".
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// fewObjects is up to how many objects a pack is unpacked in the user's repository,
// as git fetch does: a thousand runs shall not leave a thousand packs.
const fewObjects = 100

// publish puts a commit under refs/insights/<run> of the repository it came from,
// as the owner of that repository, so that nothing in it becomes root's.
func (c *Cache) publish(ctx context.Context, p Prepared, commit string) error {
	s, err := c.openGitDir(ctx, p.Origin)
	if err != nil {
		return err
	}
	fi, err := os.Stat(p.Origin)
	if err != nil {
		return err
	}
	var as *owner
	if own, ok := ownerOf(fi); ok && os.Geteuid() == 0 && own.uid != 0 {
		as = &own
	}
	bare := c.BareDir(p.Run, p.N)
	n, err := c.git.text(ctx, call{gitDir: bare, args: []string{"rev-list", "--objects", "--count", commit, "--not", p.Repo.Commit}})
	if err != nil {
		return fmt.Errorf("count objects: %w", err)
	}
	to := s.call("index-pack", "--stdin")
	if number(n) <= fewObjects {
		to = s.call("unpack-objects", "-q")
	}
	to.owner = as
	from := call{gitDir: bare, args: []string{"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"}}
	from.in = strings.NewReader(commit + "\n--not\n" + p.Repo.Commit + "\n")
	if err := c.transfer(ctx, from, to); err != nil {
		return err
	}
	ref := s.call("update-ref", "-m", "insightscli", RefPrefix+string(p.Run), commit)
	ref.owner = as
	return c.git.run(ctx, ref)
}
