package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Methods of copyTree.
const (
	methodReflink = "reflink"
	methodCopy    = "copy"
)

// workers is how many files are handled at once: most of the time goes into the
// kernel and the disk.
func workers() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// settle gives every file and directory below tree but those in .git one time, and
// all of them an owner.
func settle(tree string, at time.Time, own owner) error {
	var group errgroup.Group
	group.SetLimit(workers())
	gitDir := filepath.Join(tree, ".git")
	var dirs []string
	err := filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == gitDir:
			return filepath.SkipDir
		case d.IsDir():
			dirs = append(dirs, p)
			return nil
		}
		group.Go(func() error { return settleOne(p, at, own) })
		return nil
	})
	if werr := group.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return fmt.Errorf("finish checkout: %w", err)
	}
	if err := giveAway(gitDir, own.uid, own.gid); err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := settleOne(dirs[i], at, own); err != nil {
			return fmt.Errorf("finish checkout: %w", err)
		}
	}
	return nil
}

func settleOne(p string, at time.Time, own owner) error {
	if err := chown(p, own); err != nil {
		return err
	}
	return setTime(p, at)
}

// chown changes the owner of a file, not following links. Only root can; for
// everybody else the files are theirs already.
func chown(p string, own owner) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(p, own.uid, own.gid)
}

// giveAway makes everything below dir belong to the agent.
func giveAway(dir string, uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, uid, gid)
	})
	if err != nil {
		return fmt.Errorf("change owner: %w", err)
	}
	return nil
}

// copier copies one tree. It shares blocks where the file system can, and never
// makes hard links: the agent writes in place.
type copier struct {
	src, dst string
	own      owner
	noClone  atomic.Bool // the file system cannot share blocks
	cloned   atomic.Bool
}

// copyTree copies the tree at src to dst, which must not exist, with modes, times
// and links. It returns how.
func copyTree(ctx context.Context, src, dst string, own owner) (string, error) {
	c := &copier{src: src, dst: dst, own: own}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(workers())
	var dirs []string
	err := filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		dirs = append(dirs, rel)
		if err := os.Mkdir(filepath.Join(dst, rel), 0o700); err != nil {
			return err
		}
		// One worker has all files of a directory: two would wait for each other at
		// every file they make.
		group.Go(func() error { return c.files(gctx, rel) })
		return gctx.Err()
	})
	if werr := group.Wait(); err == nil || errors.Is(err, context.Canceled) {
		err = errors.Join(werr, ctx.Err())
	}
	if err != nil {
		return "", err
	}
	// Deepest first, when nothing changes their times any more.
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := c.attributes(dirs[i]); err != nil {
			return "", err
		}
	}
	if c.cloned.Load() && !c.noClone.Load() {
		return methodReflink, nil
	}
	return methodCopy, nil
}

// files copies what lies in a directory but its directories.
func (c *copier) files(ctx context.Context, dir string) error {
	all, err := os.ReadDir(filepath.Join(c.src, dir))
	if err != nil {
		return err
	}
	for _, d := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if d.IsDir() {
			continue
		}
		if err := c.file(filepath.Join(dir, d.Name()), d); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) file(rel string, d fs.DirEntry) error {
	from, to := filepath.Join(c.src, rel), filepath.Join(c.dst, rel)
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, to); err != nil {
			return err
		}
		return c.attributes(rel)
	case !d.Type().IsRegular():
		return fmt.Errorf("%q is not a file", rel)
	}
	if err := c.content(from, to); err != nil {
		return err
	}
	return c.attributes(rel)
}

func (c *copier) content(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read only
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fi.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if !c.noClone.Load() {
		if clone(out, in) == nil {
			c.cloned.Store(true)
			return nil
		}
		c.noClone.Store(true)
	}
	_, err = io.Copy(out, in) // copy_file_range(2) on Linux
	return err
}

// attributes gives the copy of rel the owner, mode and time of its original. What is
// right already is left: every change costs the file system as much as the file.
func (c *copier) attributes(rel string) error {
	fi, err := os.Lstat(filepath.Join(c.src, rel))
	if err != nil {
		return err
	}
	to := filepath.Join(c.dst, rel)
	is, err := os.Lstat(to)
	if err != nil {
		return err
	}
	if has, ok := ownerOf(is); ok && has != c.own {
		if err := chown(to, c.own); err != nil {
			return err
		}
	}
	if fi.Mode()&fs.ModeSymlink == 0 && is.Mode().Perm() != fi.Mode().Perm() {
		if err := os.Chmod(to, fi.Mode().Perm()); err != nil {
			return err
		}
	}
	return setTime(to, fi.ModTime())
}
