package repo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/Insights/insightscli/internal/filelock"
)

// mirrors lists the finished mirrors, the one that was unused for longest first.
func (c *Cache) mirrors() []cached {
	all, err := os.ReadDir(c.mirrorsDir())
	if err != nil {
		return nil // no cache yet
	}
	lent := c.lent()
	var out []cached
	for _, e := range all {
		dir := filepath.Join(c.mirrorsDir(), e.Name())
		name, ok := strings.CutSuffix(e.Name(), ".git")
		if !ok {
			continue
		}
		m := cached{key: name, bytes: sizeOf(filepath.Join(dir, "objects")), busy: lent[dir]}
		if fi, err := os.Stat(filepath.Join(dir, usedName)); err == nil {
			m.used = fi.ModTime()
		}
		out = append(out, m)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].used.Before(out[j].used) })
	return out
}

// lent are the mirrors that the repositories of runs borrow objects from, by
// directory. They are needed to show what a run changed, too.
func (c *Cache) lent() map[string]bool {
	out := map[string]bool{}
	lists, err := filepath.Glob(filepath.Join(globSafe(c.dir), "repos", "*", "*.git", "objects", "info", "alternates"))
	if err != nil {
		return out // the pattern is ours
	}
	real, err := filepath.EvalSymlinks(c.mirrorsDir())
	if err != nil {
		real = c.mirrorsDir()
	}
	for _, list := range lists {
		for _, dir := range alternates(filepath.Dir(filepath.Dir(list))) {
			rel, err := filepath.Rel(real, dir)
			if err != nil || strings.HasPrefix(rel, "..") {
				continue
			}
			name, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
			out[filepath.Join(c.mirrorsDir(), name)] = true
		}
	}
	return out
}

// globSafe is a path as a pattern that matches nothing else.
func globSafe(p string) string {
	if os.PathSeparator == '\\' {
		return p // there is no way to escape there
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}

func sizeOf(dir string) int64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read is not counted
		}
		if fi, err := d.Info(); err == nil {
			n += fi.Size()
		}
		return nil
	})
	return n
}

// makeMirrorRoom evicts mirrors that no run borrows from, the longest unused first,
// until those that stay are within the bound. keep is the directory of one whose lock
// the caller holds.
func (c *Cache) makeMirrorRoom(ctx context.Context, keep string) error {
	all := c.mirrors()
	var total int64
	for _, m := range all {
		total += m.bytes
	}
	for _, m := range all {
		dir := filepath.Join(c.mirrorsDir(), m.key+".git")
		if total <= c.maxMirrors {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.busy || dir == keep {
			continue
		}
		gone, err := c.evictMirror(m.key, dir)
		if err != nil {
			return err
		}
		if gone {
			total -= m.bytes
		}
	}
	return nil
}

// evictMirror removes a mirror unless somebody holds it or has borrowed from it since.
func (c *Cache) evictMirror(name, dir string) (bool, error) {
	l, err := filelock.TryPath(filepath.Join(c.mirrorsDir(), "locks", name), filelock.Exclusive)
	if err != nil {
		return false, fmt.Errorf("lock cache: %w", err)
	}
	if l == nil {
		return false, nil
	}
	defer func() { _ = l.Close() }() // gives the lock back
	if c.lent()[dir] {
		return false, nil
	}
	// Renamed first: a removal that is cut short leaves nothing that looks whole.
	if err := os.Rename(dir, dir+".tmp"); err != nil && !os.IsNotExist(err) {
		return false, fmt.Errorf("evict mirror: %w", err)
	}
	return true, RemoveAll(dir + ".tmp")
}

// sweepReplaced removes mirrors that were replaced while sandboxes showed them, when
// none can any more.
func (c *Cache) sweepReplaced() {
	old, err := filepath.Glob(filepath.Join(globSafe(c.mirrorsDir()), "*.git.old"))
	if err != nil {
		return // the pattern is ours
	}
	lent := c.lent()
	for _, dir := range old {
		if !lent[strings.TrimSuffix(dir, ".old")] {
			_ = RemoveAll(dir) // the next sweep tries again
		}
	}
}
