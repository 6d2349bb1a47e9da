package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// Bounds of what a server may take.
const (
	askBound   = 30 * time.Second
	fetchStall = time.Minute
)

// resolveRemote asks the server which branch a run begins with.
func (c *Cache) resolveRemote(ctx context.Context, r task.Repo) (Resolved, error) {
	out := Resolved{Repo: r}
	if r.Mount || r.Uncommitted {
		return out, errs.New("repo.Resolve", errs.Usage, "give the path of a working tree", "--mount and --uncommitted need a repository on this machine")
	}
	_, _, out.GitHub = fromOrigin(r.URL)
	if err := c.git.ready(ctx); err != nil {
		return out, err
	}
	h, err := c.ask(ctx, r.URL, r.Branch)
	if err != nil {
		return out, err
	}
	switch {
	case r.Branch == "":
		out.Repo.Branch = h.def
	case !h.found:
		out.Notices = append(out.Notices, fmt.Sprintf("branch %q does not exist: it begins at %s", r.Branch, h.def))
	}
	return out, nil
}

// heads is what a server told about its branches.
type heads struct {
	def    string // the default branch
	found  bool   // the branch that was asked for exists
	format string // of object ids
}

func (c *Cache) ask(ctx context.Context, address, branch string) (heads, error) {
	args := []string{"ls-remote", "--symref", "--", address, "HEAD"}
	if branch != "" {
		args = append(args, "refs/heads/"+branch)
	}
	out, err := c.git.text(ctx, call{args: args, bound: askBound})
	if err != nil {
		return heads{}, remoteError(address, err)
	}
	var h heads
	any := false
	for _, line := range strings.Split(out, "\n") {
		value, name, _ := strings.Cut(line, "\t")
		if isObjectID(value) {
			any = true
			h.format = map[int]string{40: "sha1", 64: "sha256"}[len(value)]
		}
		if ref, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok && name == "HEAD" {
			h.def = ref
		}
		h.found = h.found || (name == "refs/heads/"+branch && branch != "")
	}
	if !any {
		return h, errs.New("repo.Resolve", errs.Conflict, "push a first commit to it", "repository %s has no commit yet", address)
	}
	if h.def == "" && !h.found {
		return h, errs.New("repo.Resolve", errs.Usage, "name one with --branch", "repository %s has no default branch", address)
	}
	if h.def != "" && !validBranch(h.def) {
		return h, errs.New("repo.Resolve", errs.Unavailable, "name a branch with --branch", "the default branch of %s has no usable name", address)
	}
	return h, nil
}

// remoteError says what kind of trouble a server is in, from what git said.
func remoteError(address string, err error) error {
	var exit *gitError
	if !errors.As(err, &exit) {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return errs.New("repo.Resolve", errs.Unavailable, "check the address and the network", "repository %s did not answer: %w", address, err)
	}
	low := strings.ToLower(exit.stderr)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(low, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("host key verification failed"):
		return errs.New("repo.Resolve", errs.Auth, "connect to the host once with ssh to record its key", "the key of the host of %s is not known", address)
	case has("could not read username", "could not read password", "authentication failed", "permission denied",
		"terminal prompts disabled", "returned error: 401", "returned error: 403", "access denied"):
		return errs.New("repo.Resolve", errs.Auth, "check the name; for a private repository clone it yourself and give its path",
			"repository %s does not exist or needs credentials", address)
	case has("dubious ownership", "unsafe repository"):
		return errs.New("repo.Resolve", errs.Auth, "run insightscli as the owner of the repository", "repository %s belongs to another user", address)
	case has("not found", "does not exist", "does not appear to be a git repository", "no such file"):
		return errs.New("repo.Resolve", errs.NotFound, "check the address", "there is no repository at %s", address)
	}
	return errs.New("repo.Resolve", errs.Unavailable, "check the address and the network", "repository %s is not reachable: %w", address, err)
}

// mirror brings our copy of a remote repository up to date and returns it as a
// source. A copy that git cannot work with is made again.
func (c *Cache) mirror(ctx context.Context, r task.Repo) (*source, start, error) {
	if err := c.git.ready(ctx); err != nil {
		return nil, start{}, err
	}
	sum := sha256.Sum256([]byte(r.URL))
	name := hex.EncodeToString(sum[:16])
	dir := filepath.Join(c.mirrorsDir(), name+".git")
	unlock, err := c.lock(ctx, c.mirrorsDir(), name)
	if err != nil {
		return nil, start{}, err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		st, err := c.updateMirror(ctx, r, dir)
		if err == nil || !corrupt(err) {
			return st.src, st.start, err
		}
	}
	// A fresh one is made beside it, so that a server that is away costs nothing.
	tmp := dir + ".tmp"
	if err := RemoveAll(tmp); err != nil {
		return nil, start{}, err
	}
	if err := c.newMirror(ctx, r, tmp); err != nil {
		_ = RemoveAll(tmp) // the next try does it again
		return nil, start{}, err
	}
	if err := RemoveAll(dir); err != nil {
		return nil, start{}, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, start{}, fmt.Errorf("keep mirror: %w", err)
	}
	st, err := c.mirrorStart(ctx, r, dir)
	return st.src, st.start, err
}

// mirrored is a mirror with the place in it where a run begins.
type mirrored struct {
	src   *source
	start start
}

// corrupt reports whether an error comes from a mirror that is damaged, not from
// the server.
func corrupt(err error) bool { return errs.KindOf(err) == errs.Internal && exitCode(err) > 0 }

func (c *Cache) newMirror(ctx context.Context, r task.Repo, dir string) error {
	h, err := c.ask(ctx, r.URL, "")
	if err != nil {
		return err
	}
	init := call{args: []string{"init", "--bare", "--quiet", "--template=", "--object-format=" + h.format, "--", dir}}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	if err := c.git.run(ctx, init); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	return c.fetch(ctx, r, dir)
}

// fetch fetches all branches and tags.
func (c *Cache) fetch(ctx context.Context, r task.Repo, dir string) error {
	err := c.git.run(ctx, call{
		gitDir: dir, bound: longBound, stall: fetchStall,
		args: []string{
			"fetch", "--progress", "--prune", "--no-tags", "--no-write-fetch-head", "--force", "--", r.URL,
			"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
		},
	})
	if err != nil && exitCode(err) > 0 && !damaged(err) {
		return remoteError(r.URL, err)
	}
	if err != nil && exitCode(err) < 0 {
		return remoteError(r.URL, err)
	}
	return err
}

// damaged recognises what git says about its own repository when that is broken.
func damaged(err error) bool {
	low := strings.ToLower(stderrOf(err))
	for _, p := range []string{
		"not a git repository: '", "bad object", "corrupt", "unable to read", "missing blob", "missing tree",
		"missing commit", "invalid sha1 pointer", "did not send all necessary objects", "index file", "packfile", "bad config",
		"unable to resolve reference", "cannot lock ref",
	} {
		if strings.Contains(low, p) {
			return true
		}
	}
	return false
}

func (c *Cache) updateMirror(ctx context.Context, r task.Repo, dir string) (mirrored, error) {
	if err := c.git.run(ctx, call{gitDir: dir, args: []string{"rev-parse", "--git-dir"}}); err != nil {
		return mirrored{}, err
	}
	if err := c.fetch(ctx, r, dir); err != nil {
		return mirrored{}, err
	}
	return c.mirrorStart(ctx, r, dir)
}

// mirrorStart finds where a run begins in an up-to-date mirror. The default branch
// is asked for again: it may have been renamed since.
func (c *Cache) mirrorStart(ctx context.Context, r task.Repo, dir string) (mirrored, error) {
	h, err := c.ask(ctx, r.URL, r.Branch)
	if err != nil {
		return mirrored{}, err
	}
	s, err := c.open(ctx, dir)
	if err != nil {
		return mirrored{}, err
	}
	s.mirror = true
	s.config["remote.origin.url"] = r.URL
	s.config["insights.default"] = h.def
	from, st := r.Branch, start{branch: r.Branch}
	if from == "" || !h.found {
		from = h.def
	}
	if st.branch == "" {
		st.branch = h.def
	}
	st.commit, err = c.commit(ctx, s, "refs/heads/"+from)
	if err == nil && st.commit == "" {
		err = errs.New("repo.Prepare", errs.NotFound, "name a branch that exists", "branch %q is not in %s any more", from, r.URL)
	}
	return mirrored{src: s, start: st}, err
}
