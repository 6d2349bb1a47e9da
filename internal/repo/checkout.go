package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// checkoutFormat is part of every key: raise it when a checkout is made in another
// way, and the old ones are evicted in time.
const checkoutFormat = 1

// entryMeta is kept beside a cached checkout. Its file's time is when it was last
// used.
type entryMeta struct {
	Commit string `json:"commit"`
	Bytes  int64  `json:"bytes"`
	Boot   string `json:"boot"` // of the machine, when it was made
}

const (
	metaName    = "meta.json"
	durableName = "durable"
	// settled is after how long the kernel has surely written a checkout to disk:
	// ten times its own limit of 30 s.
	settled = 5 * time.Minute
)

// checkoutKey names a checkout. A commit decides about every byte of it but line
// ends, and the same commit of two clones is the same checkout.
func checkoutKey(s *source, commit string, o PrepareOptions) string {
	h := sha256.New()
	ends := s.lineEnds()
	for _, part := range []string{
		"checkout", strconv.Itoa(checkoutFormat), s.format, commit,
		strconv.Itoa(o.UID), strconv.Itoa(o.GID), ends["core.autocrlf"], ends["core.eol"],
	} {
		h.Write([]byte(part + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkout returns the directory of the immutable checkout of a commit, made now if
// need be, and marks it as used by the run.
func (c *Cache) checkout(ctx context.Context, s *source, commit string, o PrepareOptions) (string, error) {
	key := checkoutKey(s, commit, o)
	unlock, err := c.lock(ctx, c.checkoutsDir(), key)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(c.checkoutsDir(), key)
	if !usable(dir) {
		if err := c.makeRoom(ctx, key); err != nil {
			return "", err
		}
		if err := c.build(ctx, s, commit, dir, o); err != nil {
			return "", err
		}
	}
	if err := mark(dir, o); err != nil {
		return "", err
	}
	return filepath.Join(dir, "tree"), nil
}

// usable reports whether a finished checkout can be trusted. One that was made
// shortly before the machine went down may have lost the contents of its files.
func usable(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, metaName))
	if err != nil {
		return false
	}
	var m entryMeta
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	durable := filepath.Join(dir, durableName)
	if _, err := os.Stat(durable); err == nil {
		return true
	}
	if m.Boot != bootID() {
		return false
	}
	if fi, err := os.Stat(filepath.Join(dir, "tree", ".git", "index")); err == nil && time.Since(ctimeOf(fi)) > settled {
		_ = os.WriteFile(durable, nil, 0o600) // without it the checkout is made again after a reboot
	}
	return true
}

// mark records that a run uses the checkout in dir, which is locked.
func mark(dir string, o PrepareOptions) error {
	use := filepath.Join(dir, "use")
	if err := os.MkdirAll(use, 0o700); err != nil {
		return fmt.Errorf("mark checkout: %w", err)
	}
	if err := os.WriteFile(filepath.Join(use, markName(o)), nil, 0o600); err != nil {
		return fmt.Errorf("mark checkout: %w", err)
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, metaName), now, now); err != nil {
		return fmt.Errorf("mark checkout: %w", err)
	}
	return nil
}

// unmark drops the mark of a run that copied the tree of a checkout.
func (c *Cache) unmark(tree string, o PrepareOptions) error {
	err := os.Remove(filepath.Join(filepath.Dir(tree), "use", markName(o)))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("release checkout: %w", err)
	}
	return nil
}

func markName(o PrepareOptions) string { return string(o.Run) + "." + strconv.Itoa(o.N) }

// build makes the checkout beside its final name and renames it. What an earlier,
// killed try left is removed first; the lock is held.
func (c *Cache) build(ctx context.Context, s *source, commit, dir string, o PrepareOptions) (err error) {
	tmp := dir + ".tmp"
	for _, old := range []string{tmp, dir} {
		if err := RemoveAll(old); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			_ = RemoveAll(tmp) // the next try does it again
		}
	}()
	tree, view := filepath.Join(tmp, "tree"), filepath.Join(tmp, "view")
	if err := os.MkdirAll(filepath.Join(tree, ".git"), 0o755); err != nil {
		return fmt.Errorf("make checkout: %w", err)
	}
	d := gitDir{path: view, format: s.format, objects: s.objects, shallow: s.shallowFile(), config: s.lineEnds()}
	if err := d.make(); err != nil {
		return err
	}
	// read-tree rather than checkout: it needs no HEAD and runs no hook.
	err = c.git.run(ctx, call{
		gitDir: view, tree: tree, dir: tree, bound: longBound,
		args: []string{
			"-c", "core.bare=false", "-c", "checkout.workers=0", "-c", "index.version=2",
			"-c", "index.threads=1", "read-tree", "--reset", "-u", commit,
		},
	})
	if err != nil {
		return checkoutError(err)
	}
	size, err := finishTree(tree, filepath.Join(view, "index"), s.format, owner{uid: o.UID, gid: o.GID})
	if err != nil {
		return err
	}
	if err := RemoveAll(view); err != nil {
		return err
	}
	if err := writeMeta(tmp, entryMeta{Commit: commit, Bytes: size, Boot: bootID()}); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("make checkout: %w", err)
	}
	return nil
}

func writeMeta(dir string, m entryMeta) error {
	raw, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, metaName), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make checkout: %w", err)
	}
	return nil
}

// brokenObjects is a repository that lacks a part of the commit.
type brokenObjects struct{ error }

// Unwrap gives the cause to errors.As.
func (e *brokenObjects) Unwrap() error { return e.error }

func checkoutError(err error) error {
	if exitCode(err) > 0 {
		err = &brokenObjects{err}
		return errs.New("repo.Prepare", errs.Conflict, "run git fsck in the repository; a partial clone lacks objects until git fetched them",
			"check out the commit: %w", err)
	}
	return fmt.Errorf("check out the commit: %w", err)
}
