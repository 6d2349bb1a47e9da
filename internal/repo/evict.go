package repo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/filelock"
	"github.com/Insights/insightscli/internal/task"
)

// cached is one finished checkout.
type cached struct {
	key   string
	bytes int64
	used  time.Time
	busy  bool
}

// list looks at every finished checkout, the one that was unused for longest first.
func (c *Cache) list() []cached {
	var out []cached
	for _, key := range c.entries() {
		dir := filepath.Join(c.checkoutsDir(), key)
		e := cached{key: key}
		var m entryMeta
		raw, err := os.ReadFile(filepath.Join(dir, metaName))
		if err == nil && json.Unmarshal(raw, &m) == nil {
			e.bytes = m.Bytes
		}
		if fi, err := os.Stat(filepath.Join(dir, metaName)); err == nil {
			e.used = fi.ModTime()
		}
		marks, err := os.ReadDir(filepath.Join(dir, "use"))
		e.busy = len(marks) > 0 || (err != nil && !os.IsNotExist(err))
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].used.Before(out[j].used) })
	return out
}

// makeRoom evicts checkouts that no run uses, the longest unused first, until those
// that stay are within the bound. The lock of keep is held by the caller.
func (c *Cache) makeRoom(ctx context.Context, keep string) error {
	all := c.list()
	var total int64
	for _, e := range all {
		total += e.bytes
	}
	for _, e := range all {
		if total <= c.maxCheckouts {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.busy || e.key == keep {
			continue
		}
		gone, err := c.evict(e.key)
		if err != nil {
			return err
		}
		if gone {
			total -= e.bytes
		}
	}
	return nil
}

// evict removes a checkout unless somebody holds it now.
func (c *Cache) evict(key string) (bool, error) {
	l, err := filelock.TryPath(filepath.Join(c.checkoutsDir(), "locks", key), filelock.Exclusive)
	if err != nil {
		return false, fmt.Errorf("lock cache: %w", err)
	}
	if l == nil {
		return false, nil
	}
	defer func() { _ = l.Close() }() // gives the lock back
	dir := filepath.Join(c.checkoutsDir(), key)
	if marks, err := os.ReadDir(filepath.Join(dir, "use")); len(marks) > 0 || (err != nil && !os.IsNotExist(err)) {
		return false, nil
	}
	// Renamed first: a removal that is cut short leaves nothing that looks whole.
	if err := os.Rename(dir, dir+".tmp"); err != nil && !os.IsNotExist(err) {
		return false, fmt.Errorf("evict checkout: %w", err)
	}
	return true, RemoveAll(dir + ".tmp")
}

// Sweep releases what runs that are over hold, and removes what killed processes
// left half-made. live reports whether a run may still use what it holds.
func (c *Cache) Sweep(ctx context.Context, live func(task.ID) bool) error {
	for _, key := range c.entries() {
		dir := filepath.Join(c.checkoutsDir(), key, "use")
		marks, err := os.ReadDir(dir)
		if err != nil {
			continue // nothing is held
		}
		for _, m := range marks {
			run := task.ID(m.Name()[:max(0, len(m.Name())-len(filepath.Ext(m.Name())))])
			if live(run) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, m.Name())); err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("release checkouts: %w", err)
			}
		}
	}
	c.sweepViews()
	for _, dir := range []string{c.checkoutsDir(), c.mirrorsDir()} {
		sweepHalfMade(dir)
	}
	c.sweepReplaced()
	if err := c.makeMirrorRoom(ctx, ""); err != nil {
		return err
	}
	return c.makeRoom(ctx, "")
}

// sweepHalfMade removes what was being made in dir by processes that are gone: the
// lock of its name is free.
func sweepHalfMade(dir string) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return // there is none
	}
	for _, e := range all {
		name, half := strings.CutSuffix(e.Name(), ".tmp")
		if !half {
			continue
		}
		l, err := filelock.TryPath(filepath.Join(dir, "locks", strings.TrimSuffix(name, ".git")), filelock.Exclusive)
		if err != nil || l == nil {
			continue
		}
		_ = RemoveAll(filepath.Join(dir, e.Name())) // the next sweep tries again
		_ = l.Close()                               // gives the lock back
	}
}

// sweepViews removes views whose process was killed. One is used for seconds; a day
// leaves room for any clock and any tree.
func (c *Cache) sweepViews() {
	dir := filepath.Join(c.dir, "cache", "tmp")
	all, err := os.ReadDir(dir)
	if err != nil {
		return // there are none
	}
	for _, e := range all {
		if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) > 24*time.Hour {
			_ = RemoveAll(filepath.Join(dir, e.Name())) // the next sweep tries again
		}
	}
}

// Remove removes what a run changed. Its commit stays in the user's repository,
// under refs/insights.
func (c *Cache) Remove(ctx context.Context, run task.ID) error {
	if err := c.Release(ctx, run); err != nil {
		return err
	}
	return RemoveAll(filepath.Join(c.dir, "repos", string(run)))
}
