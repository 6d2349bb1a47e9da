package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const (
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
	all   bool // it has the history of all branches
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
	if err := w.set(ctx, dir, "remote.origin.url", w.heads.from.url); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	w.all = w.repo.FullHistory || isFile(w.heads.from.url)
	err := w.fetch(ctx, dir)
	if err != nil && strings.Contains(stderrOf(err), "dumb http") {
		w.all, err = true, w.fetchPlain(ctx, dir)
	}
	if err == nil && w.all {
		err = w.set(ctx, dir, historyKey, allHistory)
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
	if err := w.describe(ctx); err != nil {
		return mirrored{}, err
	}
	if !w.all && !w.repo.FullHistory && w.current(ctx) {
		return w.begin(ctx)
	}
	more := !w.all && w.repo.FullHistory
	w.all = w.all || more
	if err := w.fetch(ctx, w.dir); err != nil {
		return mirrored{}, err
	}
	if more {
		if err := w.set(ctx, w.dir, historyKey, allHistory); err != nil {
			return mirrored{}, err
		}
	}
	return w.begin(ctx)
}

// describe reads what kind of mirror it is, and has it fetch from where the repository
// is now. One that says nothing about itself is of a time when all had all history.
func (w *mirrorWork) describe(ctx context.Context) error {
	from, err := w.get(ctx, "remote.origin.url")
	if err != nil {
		return err
	}
	history, err := w.get(ctx, historyKey)
	if err != nil {
		return err
	}
	w.all = history == allHistory || from == ""
	if from == "" {
		if err := w.set(ctx, w.dir, historyKey, allHistory); err != nil {
			return err
		}
	}
	if from == w.heads.from.url {
		return nil
	}
	return w.set(ctx, w.dir, "remote.origin.url", w.heads.from.url)
}

// get is a setting of the mirror, or "".
func (w *mirrorWork) get(ctx context.Context, key string) (string, error) {
	value, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"config", "--get", key}})
	if exitCode(err) == 1 {
		return "", nil
	}
	return value, err
}

func (w *mirrorWork) set(ctx context.Context, dir, key, value string) error {
	return w.git.run(ctx, call{gitDir: dir, args: []string{"config", key, value}})
}

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
	if !w.all {
		s.branches = w.wanted()
	}
	from, st := h.branch, start{branch: h.branch}
	if from == "" || !h.found() {
		from = h.def
	}
	if st.branch == "" {
		st.branch = h.def
	}
	st.target = from
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
