package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// removeTree removes path and all below it, also directories that an overlay or an
// agent has left without permissions. It follows no link.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(at, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(path)
}
