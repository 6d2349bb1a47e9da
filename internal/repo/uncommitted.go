package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// view is a private git directory through which the working tree of a source is
// read: the user's objects and a copy of their index, without their configuration.
type view struct {
	dir string
	src *source
}

// view makes a view. The caller removes view.dir.
func (c *Cache) view(s *source) (view, error) {
	parent := filepath.Join(c.dir, "cache", "tmp")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return view{}, fmt.Errorf("look at working tree: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, "view-")
	if err != nil {
		return view{}, fmt.Errorf("look at working tree: %w", err)
	}
	v := view{dir: tmp, src: s}
	if err := v.fill(); err != nil {
		_ = RemoveAll(tmp) // the first error matters
		return view{}, err
	}
	return v, nil
}

func (v view) gitDir() string { return filepath.Join(v.dir, "git") }
func (v view) index() string  { return filepath.Join(v.gitDir(), "index") }

func (v view) fill() error {
	s := v.src
	config := s.lineEnds()
	for _, key := range []string{"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode"} {
		if b, ok := s.config[key]; ok {
			config[key] = b
		}
	}
	if x := s.setting("core.excludesfile"); x != "" {
		config["core.excludesfile"] = x
	}
	config["core.bare"] = "false"
	d := gitDir{path: v.gitDir(), format: s.format, objects: s.objects, shallow: s.shallowFile(), config: config}
	if err := d.make(); err != nil {
		return err
	}
	if err := writeFiles(d.path, map[string]string{"info/exclude": s.excludes()}); err != nil {
		return err
	}
	return v.copyIndex()
}

// copyIndex copies the index, and what a split index points at.
func (v view) copyIndex() error {
	from := filepath.Join(v.src.gitDir, "index")
	raw, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever staged
	}
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	// The copy keeps the time of the original, by which git tells which entries
	// are too young to be trusted.
	fi, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	if err := os.WriteFile(v.index(), raw, 0o600); err != nil {
		return fmt.Errorf("copy index: %w", err)
	}
	if err := os.Chtimes(v.index(), fi.ModTime(), fi.ModTime()); err != nil {
		return fmt.Errorf("copy index: %w", err)
	}
	all, err := os.ReadDir(v.src.gitDir)
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), "sharedindex.") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(v.src.gitDir, e.Name()))
		if err != nil {
			return fmt.Errorf("read index: %w", err)
		}
		if err := os.WriteFile(filepath.Join(v.gitDir(), e.Name()), raw, 0o600); err != nil {
			return fmt.Errorf("copy index: %w", err)
		}
	}
	return nil
}

func (v view) call(args ...string) call {
	return call{gitDir: v.gitDir(), tree: v.src.top, dir: v.src.top, args: args, bound: longBound}
}

// writing is a call that makes objects. It does not see the user's: git touches an
// object that it finds it need not write, and that would be a write to theirs.
// Trees are written whole for that, and blobs that are only named may be missing.
func (v view) writing(args ...string) call {
	c := v.call(args...)
	c.env = []string{"GIT_OBJECT_DIRECTORY=" + v.made()}
	return c
}

// made is the directory of the objects that were made through the view.
func (v view) made() string { return filepath.Join(v.dir, "made") }

// keep moves the objects that were made into an object directory of ours.
func (v view) keep(into string) error {
	dirs, err := os.ReadDir(v.made())
	if err != nil {
		return fmt.Errorf("keep objects: %w", err)
	}
	for _, d := range dirs {
		if len(d.Name()) != 2 {
			continue // info and pack
		}
		if err := os.MkdirAll(filepath.Join(into, d.Name()), 0o755); err != nil {
			return fmt.Errorf("keep objects: %w", err)
		}
		objects, err := os.ReadDir(filepath.Join(v.made(), d.Name()))
		if err != nil {
			return fmt.Errorf("keep objects: %w", err)
		}
		for _, o := range objects {
			name := filepath.Join(d.Name(), o.Name())
			if err := os.Rename(filepath.Join(v.made(), name), filepath.Join(into, name)); err != nil {
				return fmt.Errorf("keep objects: %w", err)
			}
		}
	}
	return nil
}

// quoteAll quotes paths for GIT_ALTERNATE_OBJECT_DIRECTORIES.
func quoteAll(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if strings.ContainsAny(p, `":;`) {
			out[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`
		}
	}
	return out
}

// changedFiles lists the files whose working copy differs from the index: changed,
// deleted, or not tracked and not ignored. Repositories inside the tree are left
// out.
func (c *Cache) changedFiles(ctx context.Context, v view) ([]string, error) {
	out, err := c.git.text(ctx, v.call("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"))
	if err != nil {
		return nil, fmt.Errorf("look at working tree: %w", err)
	}
	return uniquePaths(out), nil
}

func uniquePaths(z string) []string {
	seen := map[string]bool{"": true}
	var out []string
	for _, p := range strings.Split(z, "\x00") {
		if !seen[p] && !strings.HasSuffix(p, "/") {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// dirty counts the files with uncommitted changes, staged or not.
func (c *Cache) dirty(ctx context.Context, s *source) (int, error) {
	v, err := c.view(s)
	if err != nil {
		return 0, err
	}
	defer func() { _ = RemoveAll(v.dir) }() // in our own cache; Sweep finds it
	changed, err := c.changedFiles(ctx, v)
	if err != nil {
		return 0, err
	}
	_, commit, err := c.head(ctx, s)
	if err != nil || commit == "" {
		return len(changed), err
	}
	staged, err := c.git.text(ctx, v.call("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", commit))
	if err != nil {
		return 0, fmt.Errorf("look at index: %w", err)
	}
	return len(uniquePaths(strings.Join(changed, "\x00") + "\x00" + staged)), nil
}

// trees writes two trees into the object directory into: what is staged (empty when
// the index holds conflicts) and what lies in the working tree.
func (c *Cache) trees(ctx context.Context, s *source, into string) (staged, files string, err error) {
	v, err := c.view(s)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = RemoveAll(v.dir) }() // in our own cache; Sweep finds it
	if err := os.Mkdir(v.made(), 0o700); err != nil {
		return "", "", fmt.Errorf("read working tree: %w", err)
	}
	if staged, err = c.git.text(ctx, v.writing("write-tree", "--missing-ok")); err != nil {
		if exitCode(err) < 0 {
			return "", "", fmt.Errorf("read index: %w", err)
		}
		staged = ""
	}
	if err := c.stageAll(ctx, v); err != nil {
		return "", "", err
	}
	if files, err = c.git.text(ctx, v.writing("write-tree", "--missing-ok")); err != nil {
		return "", "", fmt.Errorf("read working tree: %w", err)
	}
	return staged, files, v.keep(into)
}

// stageAll brings the view's index up to the working tree. Plumbing does it, because
// `git add` would start git in every submodule.
func (c *Cache) stageAll(ctx context.Context, v view) error {
	changed, err := c.changedFiles(ctx, v)
	if err != nil {
		return err
	}
	var present, gone []string
	for _, name := range changed {
		if isFileOrSubmodule(filepath.Join(v.src.top, filepath.FromSlash(name))) {
			present = append(present, name)
		} else {
			gone = append(gone, name)
		}
	}
	for _, step := range []struct {
		how   string
		names []string
	}{{"--force-remove", gone}, {"--add", present}} {
		if len(step.names) == 0 {
			continue
		}
		update := v.writing("update-index", "--replace", "--remove", step.how, "-z", "--stdin")
		if len(v.src.lineEnds()) > 0 {
			// How line ends are kept depends on what is in the index already.
			update.env = append(update.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+
				strings.Join(quoteAll(v.src.objects), string(os.PathListSeparator)))
		}
		update.in = strings.NewReader(strings.Join(step.names, "\x00") + "\x00")
		if err := c.git.run(ctx, update); err != nil {
			return fmt.Errorf("read working tree: %w", err)
		}
	}
	return nil
}

// isFileOrSubmodule tells what git tracks from a directory that took the place of a
// file.
func isFileOrSubmodule(p string) bool {
	fi, err := os.Lstat(p)
	if err != nil {
		return false
	}
	if !fi.IsDir() {
		return true
	}
	_, err = os.Lstat(filepath.Join(p, ".git"))
	return err == nil
}

// bringUncommitted records the uncommitted work in the bare repository of the run,
// as a commit on top of HEAD that becomes the base of the changes.
func (c *Cache) bringUncommitted(ctx context.Context, s *source, p *Prepared) error {
	bare := c.BareDir(p.Run, p.N)
	objects := filepath.Join(bare, "objects")
	staged, files, err := c.trees(ctx, s, objects)
	if err != nil {
		return err
	}
	headTree, err := c.git.text(ctx, call{gitDir: bare, args: []string{"rev-parse", "--verify", p.Repo.Commit + "^{tree}"}})
	if err != nil {
		return fmt.Errorf("read HEAD: %w", err)
	}
	if staged == "" {
		staged = headTree
	}
	if files == headTree && staged == headTree {
		return nil
	}
	p.Tree, p.Index = files, staged
	p.Base, err = c.commitTree(ctx, call{gitDir: bare}, files, p.Repo.Commit, "uncommitted work")
	if err != nil {
		return err
	}
	return c.setRef(ctx, bare, "refs/insights/base", p.Base)
}

// commitTree makes a commit in the git directory of at, which is one of ours.
func (c *Cache) commitTree(ctx context.Context, at call, tree, parent, message string) (string, error) {
	at.args = []string{"commit-tree", tree, "-p", parent, "-m", message}
	at.env = append(at.env[:len(at.env):len(at.env)],
		"GIT_AUTHOR_NAME="+agentName, "GIT_AUTHOR_EMAIL="+AgentEmail,
		"GIT_COMMITTER_NAME="+agentName, "GIT_COMMITTER_EMAIL="+AgentEmail)
	out, err := c.git.text(ctx, at)
	if err != nil {
		return "", fmt.Errorf("make commit: %w", err)
	}
	return out, nil
}
