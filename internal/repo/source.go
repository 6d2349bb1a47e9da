package repo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// source is a repository on this machine that sandboxes borrow objects from: the
// user's own, or one of our mirrors.
type source struct {
	top       string // the working tree; empty for a bare one
	gitDir    string // of this working tree: HEAD and index are here
	commonDir string // shared by all working trees: refs, objects and config
	format    string // sha1 or sha256
	shallow   bool
	mirror    bool // one of ours: heads are those of a remote
	noTree    bool // only the git directory matters
	objects   []string
	// branches are those of a mirror that were fetched for this run; nil: all.
	branches map[string]string

	config map[string]string // the repository's own, last value wins
	global map[string]string // the user's
	trust  bool              // another user's, but declared safe by this one
}

// maxAlternates bounds how many object directories a sandbox is given; git itself
// follows five levels.
const (
	maxAlternates = 32
	maxDepth      = 5
)

// open looks at the repository that holds dir.
func (c *Cache) open(ctx context.Context, dir string) (*source, error) {
	if err := c.git.ready(ctx); err != nil {
		return nil, err
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil, errs.New("repo.Resolve", errs.NotFound, "give the path of a git repository", "%q is not a directory", dir)
	}
	return c.describe(ctx, &source{global: c.globalConfig(ctx)}, dir)
}

// openGitDir looks at a git directory that open found earlier.
func (c *Cache) openGitDir(ctx context.Context, dir string) (*source, error) {
	return c.describe(ctx, &source{global: c.globalConfig(ctx), noTree: true}, dir)
}

func (c *Cache) describe(ctx context.Context, s *source, dir string) (*source, error) {
	if err := c.discover(ctx, s, dir); err != nil {
		return nil, err
	}
	raw, err := c.git.text(ctx, s.call("config", "-z", "--list", "--show-scope"))
	if err != nil {
		return nil, fmt.Errorf("read the repository's configuration: %w", err)
	}
	s.config = parseConfig(ownScopes(raw))
	s.objects, err = objectDirs(filepath.Join(s.commonDir, "objects"))
	return s, err
}

// call is a git process in the source's git directory.
func (s *source) call(args ...string) call {
	return call{gitDir: s.gitDir, args: s.trusting(args)}
}

// partial reports whether the repository lacks objects that its server has.
func (s *source) partial() bool {
	return s.config["extensions.partialclone"] != "" || s.config["remote.origin.promisor"] == "true"
}

// trusting adds what makes git work in a directory of another user, when we found
// that it may: git compares the path in more than one form.
func (s *source) trusting(args []string) []string {
	if !s.trust {
		return args
	}
	return append([]string{"-c", "safe.directory=*"}, args...)
}

func (c *Cache) discover(ctx context.Context, s *source, dir string) error {
	args := []string{
		"rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir",
		"--is-bare-repository", "--is-inside-git-dir", "--is-shallow-repository", "--show-object-format",
	}
	out, err := c.git.text(ctx, call{dir: dir, args: args})
	if err != nil && isDubious(err) {
		if s.trust = trusted(s.global, dir); s.trust {
			out, err = c.git.text(ctx, call{dir: dir, args: s.trusting(args)})
		}
	}
	switch {
	case err != nil && isDubious(err):
		return errs.New("repo.Resolve", errs.Auth,
			"run insightscli as the owner of the repository, or: git config --global --add safe.directory "+dir,
			"repository %q belongs to another user", dir)
	case exitCode(err) == 128:
		return errs.New("repo.Resolve", errs.NotFound, "give the path of a git repository, or make one: git init",
			"%q is not in a git repository", dir)
	case err != nil:
		return fmt.Errorf("look at repository: %w", err)
	}
	f := strings.Split(out, "\n")
	if len(f) != 6 {
		return errs.New("repo.Resolve", errs.Internal, "", "git described %q in a way we do not know", dir)
	}
	s.gitDir, s.commonDir, s.shallow, s.format = f[0], f[1], f[4] == "true", f[5]
	if f[2] == "true" || s.noTree {
		return nil
	}
	if f[3] == "true" {
		return errs.New("repo.Resolve", errs.Usage, "give the path of the working tree", "%q is inside a .git directory", dir)
	}
	top := call{dir: dir, args: s.trusting([]string{"rev-parse", "--path-format=absolute", "--show-toplevel"})}
	if s.top, err = c.git.text(ctx, top); err != nil {
		return fmt.Errorf("look at repository: %w", err)
	}
	return nil
}

func isDubious(err error) bool {
	return strings.Contains(stderrOf(err), "dubious ownership") || strings.Contains(stderrOf(err), "unsafe repository")
}

// globalConfig is the user's own configuration, of which we use a handful of
// plain values. A user without one has none.
func (c *Cache) globalConfig(ctx context.Context) map[string]string {
	raw, err := c.git.text(ctx, call{user: true, args: []string{"config", "--global", "--includes", "-z", "--list"}})
	if err != nil {
		return map[string]string{}
	}
	return parseConfig(raw)
}

// ownScopes takes the scopes off the output of `git config -z --list --show-scope`,
// and our own -c settings with them.
func ownScopes(raw string) string {
	f := strings.Split(raw, "\x00")
	var out []string
	for i := 0; i+1 < len(f); i += 2 {
		if f[i] == "local" || f[i] == "worktree" {
			out = append(out, f[i+1])
		}
	}
	return strings.Join(out, "\x00")
}

// parseConfig reads the output of `git config -z --list`. The values of
// safe.directory are joined by NUL; of everything else the last one wins.
func parseConfig(raw string) map[string]string {
	out := map[string]string{}
	for _, e := range strings.Split(raw, "\x00") {
		key, value, ok := strings.Cut(e, "\n")
		if !ok {
			value = "true"
		}
		if key == "safe.directory" && out[key] != "" && value != "" {
			value = out[key] + "\x00" + value
		}
		if key != "" {
			out[key] = value
		}
	}
	return out
}

// trusted reports whether the user declared a directory safe that holds dir.
func trusted(global map[string]string, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for _, v := range strings.Split(global["safe.directory"], "\x00") {
		prefix, all := strings.CutSuffix(v, "/*")
		switch {
		case v == "":
		case v == "*", real == v, strings.HasPrefix(real, v+"/"), all && strings.HasPrefix(real, prefix+"/"):
			return true
		}
	}
	return false
}

// objectDirs lists an object directory and all that it borrows from, in the order
// in which git reads them.
func objectDirs(dir string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if fi, err := os.Stat(dir); seen[dir] || depth > maxDepth || err != nil || !fi.IsDir() {
			return nil
		}
		if len(out) == maxAlternates {
			return errs.New("repo.Resolve", errs.Conflict, "run git repack -a -d in it and remove .git/objects/info/alternates",
				"the repository borrows objects from more than %d others", maxAlternates)
		}
		seen[dir] = true
		out = append(out, dir)
		for _, alt := range alternates(dir) {
			if !filepath.IsAbs(alt) {
				alt = filepath.Join(dir, alt)
			}
			if err := walk(alt, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk(dir, 0)
}

func alternates(objects string) []string {
	raw, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if err != nil {
		return nil
	}
	var out []string
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, `"`) {
			if plain, err := strconv.Unquote(line); err == nil {
				line = plain
			}
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// quoteAlternate is a path as a line of an alternates file.
func quoteAlternate(p string) string {
	if strings.HasPrefix(p, `"`) || strings.HasPrefix(p, "#") || strings.ContainsAny(p, "\n") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p) + `"`
	}
	return p
}

// head returns the branch (empty when detached) and commit (empty when there is
// none yet) of the source.
func (c *Cache) head(ctx context.Context, s *source) (branch, commit string, err error) {
	ref, err := c.git.text(ctx, s.call("symbolic-ref", "-q", "HEAD"))
	if err != nil && exitCode(err) != 1 {
		return "", "", fmt.Errorf("read HEAD: %w", err)
	}
	branch, _ = strings.CutPrefix(ref, "refs/heads/")
	commit, err = c.commit(ctx, s, "HEAD")
	return branch, commit, err
}

// commit returns the commit that a full ref name (or HEAD, or an object id) stands
// for, or "" when there is none.
func (c *Cache) commit(ctx context.Context, s *source, name string) (string, error) {
	out, err := c.git.text(ctx, s.call("rev-parse", "-q", "--verify", "--end-of-options", name+"^{commit}"))
	if code := exitCode(err); code == 1 || code == 128 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if !isObjectID(out) {
		return "", fmt.Errorf("read %s: git answered %q", name, clip(out))
	}
	return out, nil
}

func validBranch(b string) bool {
	if b == "" || len(b) > 255 || b == "@" || b == "HEAD" || strings.HasPrefix(b, "-") || strings.HasSuffix(b, ".") ||
		strings.Contains(b, "..") || strings.Contains(b, "@{") || strings.ContainsAny(b, " ~^:?*[\\") {
		return false
	}
	for _, r := range b {
		if r < 0x20 || r == 0x7f || r == 0xfffd {
			return false
		}
	}
	for _, e := range strings.Split(b, "/") {
		if e == "" || strings.HasPrefix(e, ".") || strings.HasSuffix(e, ".lock") {
			return false
		}
	}
	return true
}
