//go:build unix

package seal

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/Insights/insightscli/internal/errs"
)

// check refuses a key file that others could have read or written.
func check(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return errs.New("seal.Open", errs.Config, "move it away", "the key file %s is not a regular file", path)
	case ok && int(st.Uid) != os.Geteuid():
		return errs.New("seal.Open", errs.Config, "set INSIGHTSCLI_STATE_DIR to a directory of yours",
			"the key file %s belongs to user %d, this is user %d", path, st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return errs.New("seal.Open", errs.Config, "chmod 600 "+path,
			"the key file %s is open to other users (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
