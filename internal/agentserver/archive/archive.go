// Package archive writes a tree as a tar stream and makes a tree of one. It is run
// as the agent's uid, by the subcommands "archive" and "extract" of the agent
// server, so that PID 1 never opens a path that the agent could have made; and by
// the host on streams that came out of a sandbox, which are hostile.
//
// [Extract] works below one directory that it never leaves ([os.Root]): names that
// lead out, links that point out, devices and pipes are refused, not skipped.
// Nothing is run, no owner is set, set-uid bits are dropped.
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
)

// Write writes the file or directory at name to w. Entries are named from the last
// element of name on, as `docker cp` names them; a name that ends in "/." stands for
// the contents alone. Sockets, pipes and devices are left out: they are no use
// anywhere else.
func Write(ctx context.Context, w io.Writer, name string) error {
	top := filepath.Clean(name)
	prefix := filepath.Base(top)
	if filepath.Base(name) == "." || top == string(filepath.Separator) {
		prefix = "."
	}
	tw := tar.NewWriter(w)
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		return writeEntry(tw, file, path.Join(prefix, filepath.ToSlash(rel)), d)
	})
	if err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	return tw.Close()
}

func writeEntry(tw *tar.Writer, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed while we walk: a tree that is in use
	}
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		return writeFile(tw, file, name, info)
	case info.IsDir():
		return writeHeader(tw, info, name+"/", "")
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		return writeHeader(tw, info, name, target)
	}
	return nil
}

// writeFile writes exactly the size that the header says, also of a file that grows
// or shrinks meanwhile.
func writeFile(tw *tar.Writer, file, name string, info fs.FileInfo) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := writeHeader(tw, info, name, ""); err != nil {
		return err
	}
	n, err := io.CopyN(tw, f, info.Size())
	if errors.Is(err, io.EOF) {
		_, err = io.CopyN(tw, zeros{}, info.Size()-n)
	}
	return err
}

func writeHeader(tw *tar.Writer, info fs.FileInfo, name, link string) error {
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Format = name, tar.FormatPAX
	// Who owns a file, and when it was read, means nothing on the other side.
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
	h.AccessTime, h.ChangeTime = h.ModTime, h.ModTime
	return tw.WriteHeader(h)
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
