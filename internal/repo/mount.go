package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// Owner returns whose a file is, where files have owners.
func Owner(path string) (uid int, ok bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	own, ok := ownerOf(fi)
	return own.uid, ok
}

// mountable refuses working trees whose git directory lies elsewhere: the sandbox
// would not find it, or would need more of the host than the tree.
func mountable(s *source) error {
	switch {
	case s.gitDir != s.commonDir:
		return errs.New("repo.Resolve", errs.Usage, "leave out --mount, or mount the main working tree",
			"%q is a linked worktree, whose git directory lies in another tree", s.top)
	case s.gitDir != filepath.Join(s.top, ".git"):
		return errs.New("repo.Resolve", errs.Usage, "leave out --mount, or mount the repository around it",
			"the git directory of %q lies outside it, as in a submodule", s.top)
	}
	return nil
}

// prepareMount binds the user's own tree read-write. What git would take programs
// from stays read-only: the configuration, the hooks, the submodules' directories
// and info, which holds the attributes. A directory of these that is missing is
// made, because nothing can be bound over a missing one and the agent could make
// its own. The directories on the way are bound over themselves, or the agent could
// rename .git and put another in its place.
func (c *Cache) prepareMount(_ context.Context, s *source, p Prepared, o PrepareOptions) (Prepared, error) {
	if err := mountable(s); err != nil {
		return p, err
	}
	p.Method, p.Origin = methodMount, s.commonDir
	var err error
	if p.Submodules, err = gitlinks(filepath.Join(s.gitDir, "index")); err != nil && !o.TrustMount {
		return p, errs.New("repo.Prepare", errs.Usage, "leave out --mount, or accept it with --trust-mount",
			"the mounted repository %q cannot be watched over: %w", s.top, err)
	}
	p.Notices = append(p.Notices, fmt.Sprintf("do not run git in %s before the run is over: the sandbox can change the repository", s.top))
	target := p.Repo.Dir()
	bind := func(rel string, readOnly bool) {
		p.Mounts = append(p.Mounts, sandbox.Mount{
			Kind: sandbox.MountBind, ReadOnly: readOnly,
			Source: filepath.Join(s.top, filepath.FromSlash(rel)), Target: strings.TrimSuffix(target+"/"+rel, "/"),
		})
	}
	bind("", false)
	if why := unprotectable(s); why != "" && !o.TrustMount {
		return p, errs.New("repo.Prepare", errs.Usage, "leave out --mount, or accept it with --trust-mount",
			"the mounted repository %q cannot be protected: %s", s.top, why)
	}
	if err := makeProtected(s.gitDir); err != nil && !o.TrustMount {
		return p, errs.New("repo.Prepare", errs.Usage, "leave out --mount, or accept it with --trust-mount",
			"the mounted repository %q cannot be protected: %w", s.top, err)
	}
	bind(".git", false)
	for _, rel := range []string{"config", "config.worktree", "hooks", "info", "modules"} {
		if fi, err := os.Lstat(filepath.Join(s.gitDir, rel)); err == nil && fi.Mode()&fs.ModeSymlink == 0 {
			bind(".git/"+rel, true)
		}
	}
	for _, alt := range alternates(filepath.Join(s.gitDir, "objects")) {
		to := alt
		if !filepath.IsAbs(alt) {
			to = filepath.ToSlash(filepath.Join(target, ".git", "objects", alt))
			alt = filepath.Join(s.gitDir, "objects", alt)
		}
		p.Mounts = append(p.Mounts, sandbox.Mount{Kind: sandbox.MountBind, ReadOnly: true, Source: alt, Target: to})
	}
	return p, nil
}

// makeProtected makes the directories of a git directory that shall be bound
// read-only and are missing, for its owner.
func makeProtected(gitDir string) error {
	fi, err := os.Stat(gitDir)
	if err != nil {
		return err
	}
	for _, name := range []string{"hooks", "info"} {
		dir := filepath.Join(gitDir, name)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if own, ok := ownerOf(fi); err == nil && ok {
			err = chown(dir, own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inspectMount looks, without git, for what a sandbox can plant in a mounted
// repository although its configuration is protected: git believes a file
// commondir, and runs git in every submodule that the index names, with that one's
// own configuration. The first is removed, because no main working tree has it; the
// second the user is told about. It returns "" when there is nothing to tell.
func inspectMount(p Prepared) string {
	var found []string
	if err := os.Remove(filepath.Join(p.Origin, "commondir")); err == nil {
		found = append(found, "the sandbox redirected .git by a file commondir, which was removed")
	}
	links, err := gitlinks(filepath.Join(p.Origin, "index"))
	if err != nil {
		found = append(found, "the index that the sandbox left cannot be read")
	}
	for _, name := range links {
		if !slices.Contains(p.Submodules, name) {
			found = append(found, fmt.Sprintf("the sandbox added a repository at %q: look at its configuration before you run git here", name))
		}
	}
	if len(found) > 5 {
		found = append(found[:5], fmt.Sprintf("and %d more", len(found)-5))
	}
	return strings.Join(found, "; ")
}

// maxIndex bounds the index of a mounted repository that is read back.
const maxIndex = 512 << 20

// gitlinks lists the submodules that an index names.
func gitlinks(index string) ([]string, error) {
	fi, err := os.Lstat(index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxIndex {
		return nil, fmt.Errorf("read index: not a file of ours")
	}
	raw, err := os.ReadFile(index)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	entries, err := readIndex(raw)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.mode&modeMask == modeGitlink {
			out = append(out, e.path)
		}
	}
	return out, nil
}

// unprotectable tells why binding files read-only is not enough for a repository:
// its own settings make the host run what lies in the tree.
func unprotectable(s *source) string {
	for _, rel := range []string{"", "config", "config.worktree", "hooks", "info", "modules"} {
		fi, err := os.Lstat(filepath.Join(s.gitDir, rel))
		if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return fmt.Sprintf("%s is a symbolic link", filepath.Join(".git", rel))
		}
	}
	if s.config["extensions.worktreeconfig"] == "true" {
		if _, err := os.Stat(filepath.Join(s.gitDir, "config.worktree")); err != nil {
			return "its per-worktree configuration is turned on but there is none yet"
		}
	}
	for _, key := range []string{"core.hookspath", "core.fsmonitor", "core.attributesfile"} {
		if v := s.config[key]; within(s.top, v) {
			return fmt.Sprintf("%s points into the tree (%s)", key, v)
		}
	}
	for key, v := range s.config {
		if (key == "include.path" || strings.HasPrefix(key, "includeif.")) && within(s.top, v) {
			return fmt.Sprintf("%s points into the tree (%s)", key, v)
		}
	}
	return ""
}

// within reports whether a path of a git setting lies in the working tree, which
// relative ones do.
func within(top, v string) bool {
	switch {
	case v == "" || v == "true" || v == "false" || strings.HasPrefix(v, "~"):
		return false
	case !filepath.IsAbs(v):
		return true
	}
	rel, err := filepath.Rel(top, v)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
