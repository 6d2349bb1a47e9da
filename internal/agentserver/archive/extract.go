package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Limits bounds what [Extract] makes of a stream. 0 is no limit.
type Limits struct {
	Bytes   int64 // of all files
	Entries int
}

// DefaultLimits is more than a checkout and less than a disk.
func DefaultLimits() Limits { return Limits{Bytes: 64 << 30, Entries: 5_000_000} }

// ErrRefused is wrapped when an entry would leave the directory, is of a kind that
// is never made, or exceeds a limit.
var ErrRefused = errors.New("refused")

// Extract makes the entries of the tar stream r below dir, which is made when it is
// absent. What exists is replaced, a directory never by something else. After an
// error what was made stays.
func Extract(ctx context.Context, r io.Reader, dir string, limits Limits) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	x := &extraction{ctx: ctx, root: root, in: tar.NewReader(r), left: limits}
	if err := x.all(); err != nil {
		return fmt.Errorf("extract into %s: %w", dir, err)
	}
	// What a sender pads its last block with, so that it does not see a broken pipe.
	_, err = io.Copy(io.Discard, r)
	return err
}

type extraction struct {
	ctx  context.Context // one call's state: it does not outlive Extract
	root *os.Root
	in   *tar.Reader
	left Limits
	dirs []dirTime
}

// dirTime is a directory's mode and time, set when all is in it.
type dirTime struct {
	name string
	mode fs.FileMode
	time time.Time
}

func (x *extraction) all() error {
	limitBytes, limitEntries := x.left.Bytes > 0, x.left.Entries > 0
	for {
		h, err := x.in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return x.finishDirs()
		case err != nil:
			return err
		case x.ctx.Err() != nil:
			return x.ctx.Err()
		}
		x.left.Bytes -= h.Size
		x.left.Entries--
		if limitBytes && x.left.Bytes < 0 || limitEntries && x.left.Entries < 0 {
			return fmt.Errorf("%w: more than is allowed", ErrRefused)
		}
		if err := x.entry(h); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

func (x *extraction) entry(h *tar.Header) error {
	name, err := localName(h.Name)
	if err != nil {
		return err
	}
	if h.Typeflag != tar.TypeDir {
		if name == "." {
			return fmt.Errorf("%w: the directory itself", ErrRefused)
		}
		if err := x.makeWay(name); err != nil {
			return err
		}
	}
	mode := h.FileInfo().Mode().Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		return x.dir(name, mode, h.ModTime)
	case tar.TypeReg:
		return x.file(name, mode, h)
	case tar.TypeSymlink:
		return x.symlink(name, h.Linkname)
	case tar.TypeLink:
		return x.hardLink(name, h.Linkname)
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fmt.Errorf("%w: entry of type %q", ErrRefused, h.Typeflag)
}

// localName returns an entry's name as a path below the root.
func localName(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || !filepath.IsLocal(filepath.FromSlash(clean)) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: a path that leads out of the directory", ErrRefused)
	}
	return filepath.FromSlash(clean), nil
}

// makeWay makes the parents of name and removes what is in its place.
func (x *extraction) makeWay(name string) error {
	if parent := filepath.Dir(name); parent != "." {
		if err := x.root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	if err := x.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // also a directory that is not empty
	}
	return nil
}

func (x *extraction) dir(name string, mode fs.FileMode, t time.Time) error {
	// Writable until all is in it.
	if err := x.root.MkdirAll(name, mode|0o700); err != nil {
		return err
	}
	if name != "." {
		x.dirs = append(x.dirs, dirTime{name, mode, t})
	}
	return nil
}

func (x *extraction) file(name string, mode fs.FileMode, h *tar.Header) error {
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, x.in)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return x.root.Chtimes(name, h.ModTime, h.ModTime)
}

// symlink makes a symbolic link that stays below the root. The kernel would follow
// one that does not for every later reader.
func (x *extraction) symlink(name, target string) error {
	slashed := filepath.ToSlash(target)
	if path.IsAbs(slashed) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" ||
		!filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(filepath.ToSlash(name)), slashed))) {
		return fmt.Errorf("%w: a link to %q, out of the directory", ErrRefused, target)
	}
	return x.root.Symlink(target, name)
}

func (x *extraction) hardLink(name, target string) error {
	from, err := localName(target)
	if err != nil {
		return err
	}
	info, err := x.root.Lstat(from)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: a hard link to something other than a file", ErrRefused)
	}
	return x.root.Link(from, name)
}

// finishDirs sets modes and times, the deepest first, because setting a time needs a
// parent that can be searched.
func (x *extraction) finishDirs() error {
	for i := len(x.dirs) - 1; i >= 0; i-- {
		d := x.dirs[i]
		if err := x.root.Chtimes(d.name, d.time, d.time); err != nil {
			return err
		}
		if err := x.root.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}
