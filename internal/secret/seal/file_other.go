//go:build !unix

package seal

import (
	"io/fs"

	"github.com/Insights/insightscli/internal/errs"
)

// check refuses what is no file; access lists take the place of modes here.
func check(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errs.New("seal.Open", errs.Config, "move it away", "the key file %s is not a regular file", path)
	}
	return nil
}

// syncDir does nothing: directories cannot be synced on this platform.
func syncDir(string) error { return nil }
