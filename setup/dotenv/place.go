package dotenv

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

const (
	maxLinks    = 40 // as Linux
	randomBytes = 8  // in the name of a temporary file
)

// place is where a file really lies. Its directory is held open: nobody can put another
// in its way between two steps.
type place struct {
	op   string
	path string // as the caller named it
	dir  *os.Root
	base string
	// owner of the links that led here; 0 if there were none, or root's alone
	linkOwner int
}

// findPlace follows the symbolic links that path consists of.
func findPlace(op, path string) (*place, error) {
	p := &place{op: op, path: path}
	at := path
	for links := 0; ; links++ {
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && links == 0:
			return p.open(at)
		case errors.Is(err, fs.ErrNotExist):
			return nil, p.fail(errs.Config, "remove the link, or make the file that it names",
				"%s is a symbolic link to %s, which does not exist", path, at)
		case err != nil:
			return nil, p.readError(err)
		case info.Mode()&fs.ModeSymlink == 0:
			return p.open(at)
		case links == maxLinks:
			return nil, p.fail(errs.Config, "remove the link", "%s is a symbolic link that leads in a circle", path)
		}
		if uid, _, ok := ownerOf(info); ok && uid != 0 {
			if p.linkOwner != 0 && p.linkOwner != uid {
				return nil, p.foreign()
			}
			p.linkOwner = uid
		}
		target, err := os.Readlink(at)
		if err != nil {
			return nil, p.readError(err)
		}
		if !filepath.IsAbs(target) { // not cleaned: what a .. leads to is for the system to say
			dir, _ := filepath.Split(at)
			target = dir + target
		}
		at = target
	}
}

func (p *place) open(at string) (*place, error) {
	name, base := filepath.Split(at)
	dir, err := os.OpenRoot(cmp.Or(name, "."))
	if err != nil {
		return nil, p.fail(errs.Config, "make the directory, or name another file with --env-file",
			"open the directory of %s: %w", p.path, cause(err))
	}
	p.dir, p.base = dir, cmp.Or(base, ".")
	return p, nil
}

func (p *place) close() { _ = p.dir.Close() } // a directory: nothing is lost

// mayFollow refuses links of one user to a file of another: they must not choose what
// root edits.
func (p *place) mayFollow(info fs.FileInfo) error {
	if uid, _, ok := ownerOf(info); ok && p.linkOwner != 0 && p.linkOwner != uid {
		return p.foreign()
	}
	return nil
}

// mayReplace refuses a file of somebody else, which would become ours, and one that its
// owner has made read-only.
func (p *place) mayReplace(c content) error {
	if c.info == nil {
		return nil
	}
	if !p.isOurs(c.info) {
		return p.foreign()
	}
	if c.info.Mode()&0o200 == 0 {
		return p.fail(errs.Config, "run 'chmod u+w "+p.path+"'", "%s is read-only", p.path)
	}
	return nil
}

// isOurs reports whether we may do with the file what its owner may.
func (p *place) isOurs(info fs.FileInfo) bool {
	uid, _, ok := ownerOf(info)
	return !ok || os.Geteuid() == 0 || os.Geteuid() == uid
}

func (p *place) foreign() error {
	if p.linkOwner != 0 {
		return p.fail(errs.Auth, "name the file itself with --env-file", "%s is a symbolic link to a file of another user", p.path)
	}
	return p.fail(errs.Auth, "run this as the user who owns it", "%s belongs to another user", p.path)
}

// closeToOthers takes the rights of everybody but the owner away.
func (p *place) closeToOthers(c content) error {
	if c.info == nil || c.info.Mode().Perm()&0o077 == 0 || !p.isOurs(c.info) {
		return nil
	}
	if err := p.dir.Chmod(p.base, c.info.Mode().Perm()&0o700); err != nil {
		return p.writeError(err)
	}
	return nil
}

// between stands between the name of the file and the random part of a temporary one's.
const between = ".tmp-"

// create writes text to a new file beside the old one, and to the disk.
func (p *place) create(old content, text []byte, at func(string)) (name string, err error) {
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	name = p.base + between + hex.EncodeToString(random[:])
	f, err := p.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	at("write")
	err = p.fill(f, old, text, at)
	if err = errors.Join(err, f.Close()); err != nil {
		p.discard(name)
		return "", err
	}
	return name, nil
}

func (p *place) fill(f *os.File, old content, text []byte, at func(string)) error {
	half := len(text) / 2
	if _, err := f.Write(text[:half]); err != nil {
		return err
	}
	at("write more")
	if _, err := f.Write(text[half:]); err != nil {
		return err
	}
	if err := p.keepOwner(f, old); err != nil {
		return err
	}
	if err := f.Chmod(0o600); err != nil { // a umask may have taken our own rights
		return err
	}
	at("flush")
	return f.Sync()
}

// discard removes a temporary file that may be gone.
func (p *place) discard(name string) { _ = p.dir.Remove(name) } // the next Edit sweeps

// sweep removes the temporary files of writers that were killed. Whoever holds the lock
// is the only writer.
func (p *place) sweep() {
	d, err := p.dir.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }() // read only
	names, _ := d.Readdirnames(-1)   // what cannot be listed stays
	for _, name := range names {
		random, ours := strings.CutPrefix(name, p.base+between)
		if b, err := hex.DecodeString(random); ours && err == nil && len(b) == randomBytes {
			p.discard(name)
		}
	}
}
