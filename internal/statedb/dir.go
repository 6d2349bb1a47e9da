package statedb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// prepareDir makes the state directory and refuses one that cannot hold a
// database. It returns the absolute path.
func prepareDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", errs.New("statedb.Open", errs.Config, dberr.HintStateDir, "find the state directory %q: %w", dir, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fileError("create the state directory", abs, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fileError("open the state directory", abs, err)
	}
	if err := checkOwner(abs, info); err != nil {
		return "", err
	}
	if err := checkMode(abs, info); err != nil {
		return "", err
	}
	if name := networkFS(abs); name != "" {
		return "", errs.New("statedb.Open", errs.Config, dberr.HintStateDir,
			"the state directory %s is on a %s file system, where locks and the database do not work", abs, name)
	}
	return abs, nil
}

// checkOwner refuses a directory of another user: files made there would be in that
// user's way, and that user could read and change ours.
func checkOwner(dir string, info fs.FileInfo) error {
	uid, ok := ownerOf(info)
	if !ok || uid == os.Geteuid() {
		return nil
	}
	return errs.New("statedb.Open", errs.Config, dberr.HintStateDir,
		"the state directory %s belongs to user %d, this is user %d", dir, uid, os.Geteuid())
}

// checkMode refuses a directory that its owner may not write to, closes one of ours
// to other users, and refuses to do so to one that holds other things.
func checkMode(dir string, info fs.FileInfo) error {
	if !hasModes {
		return nil
	}
	if info.Mode().Perm()&0o300 != 0o300 {
		// Somebody wanted that: it is not undone, not even by root, who could write.
		return errs.New("statedb.Open", errs.Config, dberr.HintStateDir, "the state directory %s is read-only (mode %04o)", dir, info.Mode().Perm())
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if ours(dir) {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fileError("close the state directory to other users", dir, err)
		}
		return nil
	}
	if info.Mode().Perm()&0o022 == 0 {
		return nil // others can look, but what we make in it is closed to them
	}
	return errs.New("statedb.Open", errs.Config, dberr.HintStateDir,
		"the state directory %s holds other files and other users can write to it", dir)
}

// ours reports whether dir is empty or has a state.db.
func ours(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, fileName)); err == nil {
		return true
	}
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	names, _ := d.Readdirnames(1)
	_ = d.Close() // read only
	return len(names) == 0
}

// createFile makes the database file, empty and closed to others, unless it is
// there. An existing one is never opened here: closing it again would drop the
// POSIX locks that another connection of this process holds.
func createFile(path string) error {
	info, err := os.Lstat(path)
	if err == nil {
		return checkFile(path, info)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil // another process was faster
	case err != nil:
		return fileError("create", path, err)
	}
	if err := f.Close(); err != nil {
		return fileError("create", path, err)
	}
	return nil
}

func checkFile(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errs.New("statedb.Open", errs.Config, dberr.HintStateDir, "%s is not a regular file", path)
	}
	if uid, ok := ownerOf(info); ok && uid != os.Geteuid() {
		return errs.New("statedb.Open", errs.Config, dberr.HintStateDir,
			"%s belongs to user %d, this is user %d", path, uid, os.Geteuid())
	}
	if hasModes && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return fileError("close to other users", path, err)
		}
	}
	return nil
}

// fileError says what the file system refused: Config where another directory
// would do, Internal where the disk is the matter.
func fileError(doing, path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the path is said once
	}
	kind, hint := errs.Config, dberr.HintStateDir
	switch {
	case errors.Is(err, syscall.ENOSPC):
		kind, hint = errs.Internal, dberr.HintSpace
	case errors.Is(err, syscall.EIO):
		kind, hint = errs.Internal, "check the disk of the state directory"
	}
	return errs.New("statedb.Open", kind, hint, "%s %s: %w", doing, path, err)
}
