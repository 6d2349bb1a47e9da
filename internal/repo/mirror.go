package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// recent is how many commits of a branch a run sees unless it asks for all: what a
	// git log is read for, and a fraction of what a long history weighs.
	recent = 50
	// smallBlob is up to which size old versions of files come with the whole history.
	smallBlob = "blob:limit=128k"

	brokenName = "insights-broken" // in a mirror: make it again
	usedName   = "insights-used"   // in a mirror: its time is when it was last used
	historyKey = "insights.history"
	allHistory = "all"
)

// mirror brings our copy of a remote repository up to date and returns it as a source.
// A copy that git cannot work with is made again, once. Until release is called the
// copy is nobody else's to change or evict.
func (c *Cache) mirror(ctx context.Context, r task.Repo) (m mirrored, release func(), err error) {
	if err := c.git.ready(ctx); err != nil {
		return m, nil, err
	}
	h, err := c.ask(ctx, r.URL, r.Branch)
	if err != nil {
		return m, nil, err
	}
	name := mirrorName(r.URL)
	unlock, err := c.lock(ctx, c.mirrorsDir(), name)
	if err != nil {
		return m, nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	w := mirrorWork{Cache: c, repo: r, heads: h, dir: filepath.Join(c.mirrorsDir(), name+".git")}
	m, err = w.make(ctx)
	if err != nil {
		return m, nil, err
	}
	if err := touch(filepath.Join(w.dir, usedName)); err != nil {
		return m, nil, fmt.Errorf("keep mirror: %w", err)
	}
	if w.grew {
		err = c.makeMirrorRoom(ctx, w.dir)
	}
	return m, unlock, err
}

func mirrorName(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:16])
}

func touch(file string) error {
	now := time.Now()
	if err := os.Chtimes(file, now, now); err == nil {
		return nil
	}
	return os.WriteFile(file, nil, 0o600)
}

// mirrored is a mirror with the place in it where a run begins.
type mirrored struct {
	src   *source
	start start
}

// mirrorWork is the work on one mirror, whose lock is held.
type mirrorWork struct {
	*Cache
	repo  task.Repo
	heads heads
	dir   string
	grew  bool // something was fetched
}

func (w *mirrorWork) make(ctx context.Context) (mirrored, error) {
	if _, err := os.Stat(w.dir); err == nil {
		m, err := w.update(ctx)
		if err == nil || !corrupt(err) {
			return m, err
		}
	}
	// A fresh one is made beside it, so that a server that is away costs nothing.
	tmp := w.dir + ".tmp"
	if err := RemoveAll(tmp); err != nil {
		return mirrored{}, err
	}
	if err := w.create(ctx, tmp); err != nil {
		_ = RemoveAll(tmp) // the next try does it again
		return mirrored{}, err
	}
	if err := w.setAside(); err != nil {
		return mirrored{}, err
	}
	if err := os.Rename(tmp, w.dir); err != nil {
		return mirrored{}, fmt.Errorf("keep mirror: %w", err)
	}
	return w.begin(ctx)
}

// setAside takes a mirror that is no good out of the way. Sandboxes that show its
// objects go on with what is left of them; Sweep removes it.
func (w *mirrorWork) setAside() error {
	old := w.dir + ".old"
	if err := RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(w.dir, old); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replace mirror: %w", err)
	}
	if w.lent()[w.dir] {
		return nil
	}
	return RemoveAll(old)
}

// corrupt reports whether an error comes from a mirror that is damaged, not from
// the server.
func corrupt(err error) bool { return errs.KindOf(err) == errs.Internal && exitCode(err) > 0 }

// breakMirror has the mirror of a repository made again when it is used next.
func (c *Cache) breakMirror(r task.Repo) error {
	err := os.WriteFile(filepath.Join(c.mirrorsDir(), mirrorName(r.URL)+".git", brokenName), nil, 0o600)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replace mirror: %w", err)
	}
	return nil
}

func (w *mirrorWork) create(ctx context.Context, dir string) error {
	init := call{args: []string{"init", "--bare", "--quiet", "--template=", "--object-format=" + w.heads.format, "--", dir}}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	if err := w.git.run(ctx, init); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	if err := w.git.run(ctx, call{gitDir: dir, args: []string{"config", "remote.origin.url", w.heads.from.url}}); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	all := w.repo.FullHistory || isFile(w.heads.from.url)
	err := w.fetch(ctx, dir, all)
	if err != nil && strings.Contains(stderrOf(err), "dumb http") {
		all, err = true, w.fetchPlain(ctx, dir)
	}
	if err == nil && all {
		err = w.git.run(ctx, call{gitDir: dir, args: []string{"config", historyKey, allHistory}})
	}
	return err
}

// isFile reports whether an address is on a disk of this machine, where leaving
// something out saves nothing.
func isFile(address string) bool { return strings.HasPrefix(address, "file://") }

// update brings a mirror up to date. One that has all the history keeps it.
func (w *mirrorWork) update(ctx context.Context) (mirrored, error) {
	if _, err := os.Lstat(filepath.Join(w.dir, brokenName)); err == nil {
		return mirrored{}, &gitError{verb: "fsck", code: 1, stderr: "error: the mirror was found to be corrupt"}
	}
	if err := w.git.run(ctx, call{gitDir: w.dir, args: []string{"rev-parse", "--git-dir"}}); err != nil {
		return mirrored{}, err
	}
	removeLeftLocks(w.dir)
	has := w.hasAll(ctx)
	if !has && !w.repo.FullHistory && w.current(ctx) {
		return w.begin(ctx)
	}
	if err := w.fetch(ctx, w.dir, has || w.repo.FullHistory); err != nil {
		return mirrored{}, err
	}
	if !has && w.repo.FullHistory {
		if err := w.git.run(ctx, call{gitDir: w.dir, args: []string{"config", historyKey, allHistory}}); err != nil {
			return mirrored{}, err
		}
	}
	return w.begin(ctx)
}

// hasAll reports whether a mirror has the history of all branches. One that says
// nothing about it is of a time when all had.
func (w *mirrorWork) hasAll(ctx context.Context) bool {
	value, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"config", "--get", historyKey}})
	if err == nil && value == allHistory {
		return true
	}
	_, err = w.git.text(ctx, call{gitDir: w.dir, args: []string{"config", "--get", "remote.origin.url"}})
	return exitCode(err) == 1
}

// current reports whether the branches that the run wants are where the server has
// them.
func (w *mirrorWork) current(ctx context.Context) bool {
	for branch, commit := range w.wanted() {
		got, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"rev-parse", "-q", "--verify", "refs/heads/" + branch}})
		if err != nil || got != commit {
			return false
		}
	}
	return true
}

// wanted are the branches that a run sees of a mirror that has not all.
func (w *mirrorWork) wanted() map[string]string {
	out := map[string]string{}
	if w.heads.def != "" && w.heads.tip != "" {
		out[w.heads.def] = w.heads.tip
	}
	if w.heads.found() {
		out[w.heads.branch] = w.heads.commit
	}
	return out
}

// fetch brings all branches and tags with their history, or the newest commits of the
// branches that are wanted.
func (w *mirrorWork) fetch(ctx context.Context, dir string, all bool) error {
	args := []string{"fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--force"}
	if !all {
		args = append(args, "--depth="+strconv.Itoa(recent), "--", "origin")
		for branch := range w.wanted() {
			args = append(args, "+refs/heads/"+branch+":refs/heads/"+branch)
		}
		return w.run(ctx, dir, "", args)
	}
	args = append(args, "--prune")
	if _, err := os.Stat(filepath.Join(dir, "shallow")); err == nil {
		args = append(args, "--unshallow")
	}
	from := w.heads.from.url
	if !isFile(from) {
		args, from = append(args, "--filter="+smallBlob), "origin"
	}
	return w.run(ctx, dir, "", append(args, "--", from, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"))
}

// fetchPlain fetches from a server that can leave nothing out.
func (w *mirrorWork) fetchPlain(ctx context.Context, dir string) error {
	return w.run(ctx, dir, "", []string{
		"fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--force", "--prune", "--", w.heads.from.url,
		"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
	})
}

// run is a fetch that is told on its standard input what it wants beside its arguments.
func (w *mirrorWork) run(ctx context.Context, dir, in string, args []string) error {
	w.grew = true
	_, err := w.access.reach(ctx, w.heads.from.url, func(s server) error {
		fetch := s.call(args...)
		fetch.gitDir, fetch.bound, fetch.stall = dir, longBound, w.stall
		fetch.in = strings.NewReader(in)
		err := w.git.run(ctx, fetch)
		if damaged(err) {
			return &ourTrouble{err}
		}
		return err
	})
	return err
}

// ourTrouble is what git says about the mirror, not about the server.
type ourTrouble struct{ error }

// Unwrap gives the cause to errors.As.
func (e *ourTrouble) Unwrap() error { return e.error }

// begin finds where the run begins in an up-to-date mirror.
func (w *mirrorWork) begin(ctx context.Context) (mirrored, error) {
	s, err := w.open(ctx, w.dir)
	if err != nil {
		return mirrored{}, err
	}
	h := w.heads
	s.mirror = true
	s.config["remote.origin.url"] = h.from.url
	s.config["insights.default"] = h.def
	if !w.hasAll(ctx) {
		s.branches = w.wanted()
	}
	from, st := h.branch, start{branch: h.branch}
	if from == "" || !h.found() {
		from = h.def
	}
	if st.branch == "" {
		st.branch = h.def
	}
	st.commit, err = w.commit(ctx, s, "refs/heads/"+from)
	if err == nil && st.commit == "" {
		err = errs.New("repo.Prepare", errs.NotFound, "name a branch that exists", "branch %q is not in %s any more", from, h.from.url)
	}
	if err != nil {
		return mirrored{}, err
	}
	if s.shallow {
		st.notices = append(st.notices, fmt.Sprintf("the history in the sandbox ends after %d commits; --full-history brings all of it", recent))
	}
	return mirrored{src: s, start: st}, w.complete(ctx, s, &st)
}

// complete fetches the files of the commit that the history came without.
func (w *mirrorWork) complete(ctx context.Context, s *source, st *start) error {
	if !s.partial() {
		return nil
	}
	out, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"rev-list", "--objects", "--missing=print", "--no-walk", st.commit}})
	if err != nil {
		return fmt.Errorf("look for missing files: %w", err)
	}
	var missing strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		if oid, ok := strings.CutPrefix(line, "?"); ok && isObjectID(oid) {
			missing.WriteString(oid + "\n")
		}
	}
	if missing.Len() == 0 {
		return nil
	}
	return w.run(ctx, w.dir, missing.String(), []string{
		"-c", "fetch.negotiationAlgorithm=noop", "fetch", "--progress", "--no-tags", "--no-write-fetch-head",
		"--filter=blob:none", "--stdin", "origin",
	})
}

// removeLeftLocks removes what a killed git left in a mirror, whose lock is held: its
// own locks would stop the next one.
func removeLeftLocks(dir string) {
	for _, name := range []string{"shallow.lock", "packed-refs.lock", "config.lock", "HEAD.lock"} {
		_ = os.Remove(filepath.Join(dir, name)) // there is none
	}
	for _, refs := range []string{"refs/heads", "refs/tags"} {
		_ = filepath.WalkDir(filepath.Join(dir, refs), func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(p, ".lock") {
				_ = os.Remove(p) // git says so if it stays
			}
			return nil
		})
	}
	removePartialPacks(dir)
}
