package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll removes a directory that an agent wrote in: directories that deny
// writing or reading to their owner are opened up first. Without write access to
// their contents os.RemoveAll gives up on them.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return wrapRemove(err)
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // what it cannot open, the removal below reports
		}
		return nil
	})
	return wrapRemove(os.RemoveAll(dir))
}

func wrapRemove(err error) error {
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}
