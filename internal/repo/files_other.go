//go:build !unix

package repo

import (
	"io/fs"
	"os"
	"time"
)

// setTime sets the modification time of a file. That of a link stays: there is no
// call for it here.
func setTime(p string, at time.Time) error {
	if fi, err := os.Lstat(p); err != nil || fi.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return os.Chtimes(p, at, at)
}
