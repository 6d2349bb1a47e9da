package jail

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
)

// placeGuard makes the agent server's git and gh, below root. What an image or a snapshot
// has there goes. Where an image keeps root from writing, they are not there: what the
// guard guides is held by the missing credential.
func placeGuard(root string) error {
	return errors.Join(placeProgram(root+wire.GitPath), placeProgram(root+wire.GHPath))
}

func placeProgram(path string) error {
	program := filepath.Base(wire.ServerPath)
	err := os.Symlink(program, path)
	if errors.Is(err, fs.ErrExist) {
		if to, _ := os.Readlink(path); to == program {
			return nil
		}
		if err = os.Remove(path); err == nil {
			err = os.Symlink(program, path)
		}
	}
	return unlessRefused(err)
}

// pathText keeps our programs, git among them, first in the PATH of login shells, for
// which /etc/profile makes a new one on many systems.
const pathText = `
# The sandbox's own programs come first.
case "${PATH-}" in
` + wire.BinDir + `:*) ;;
*) PATH="` + wire.BinDir + `${PATH:+:$PATH}"; export PATH ;;
esac
`

// keepPath adds pathText to the start-up file of login shells, once, and makes the file
// where there is none. One that is a link is left alone.
func keepPath(profile string) error {
	f, err := os.OpenFile(profile, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return unlessRefused(err)
	}
	text := make([]byte, copyLimit)
	n, _ := f.Read(text) // nothing in a new one
	if !bytes.Contains(text[:n], []byte(pathText)) {
		_, err = f.WriteString(pathText)
	}
	return errors.Join(err, f.Close())
}

// unlessRefused returns err unless the image is the reason for it.
func unlessRefused(err error) error {
	for _, refusal := range []error{fs.ErrPermission, unix.EROFS, unix.ELOOP, unix.EISDIR} {
		if errors.Is(err, refusal) {
			return nil
		}
	}
	return err
}
