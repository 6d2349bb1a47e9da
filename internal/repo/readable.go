package repo

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readableBy reports whether the agent can read every object of the source through
// a bind mount. It matters when we are root and the agent is not: otherwise it is
// us, and we read them all the time.
func readableBy(s *source, own owner) bool {
	if os.Geteuid() != 0 || own.uid == 0 {
		return true
	}
	for _, dir := range s.objects {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			return mayRead(fi, own)
		})
		if err != nil {
			return false
		}
	}
	return true
}

// mayRead reports by its error whether a user may read a file or list a directory.
func mayRead(fi os.FileInfo, own owner) error {
	has, ok := ownerOf(fi)
	if !ok {
		return nil
	}
	want := fs.FileMode(0o4)
	if fi.IsDir() {
		want = 0o5
	}
	switch {
	case has.uid == own.uid:
		want <<= 6
	case has.gid == own.gid:
		want <<= 3
	}
	if fi.Mode().Perm()&want != want {
		return fs.ErrPermission
	}
	return nil
}

// copyObjects copies all objects that the sandbox needs of a source that the agent
// cannot read into the bare repository of the run.
func (c *Cache) copyObjects(ctx context.Context, s *source, p Prepared) error {
	from := s.call("pack-objects", "--revs", "--all", "--stdout", "--delta-base-offset", "-q", "--missing=allow-promisor")
	from.in = strings.NewReader(p.Repo.Commit + "\n")
	return c.transfer(ctx, from, call{gitDir: c.BareDir(p.Run, p.N), args: []string{"index-pack", "--stdin"}})
}

// copyUncommitted does the same for objects that only the user's index refers to.
func (c *Cache) copyUncommitted(ctx context.Context, p Prepared) error {
	bare := c.BareDir(p.Run, p.N)
	from := call{gitDir: bare, args: []string{"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"}}
	from.in = strings.NewReader(p.Base + "\n" + p.Index + "\n--not\n" + p.Repo.Commit + "\n")
	return c.transfer(ctx, from, call{gitDir: bare, args: []string{"index-pack", "--stdin"}})
}

// transfer feeds the pack that one git process makes to another that stores it.
func (c *Cache) transfer(ctx context.Context, from, to call) error {
	r, w := io.Pipe()
	from.out, from.bound = w, longBound
	to.in, to.bound = r, longBound
	to.out = io.Discard
	made := make(chan error, 1)
	go func() {
		err := c.git.run(ctx, from)
		_ = w.CloseWithError(err) // never fails
		made <- err
	}()
	err := c.git.run(ctx, to)
	_ = r.CloseWithError(io.ErrClosedPipe) // ends the other side if it still writes
	if from := <-made; from != nil && err == nil {
		err = from
	}
	if err != nil {
		return fmt.Errorf("copy objects: %w", err)
	}
	return nil
}
