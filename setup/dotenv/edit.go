package dotenv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

const (
	maxFile  = 1 << 20          // a larger file is no .env
	lockWait = 30 * time.Second // longer than any edit takes
	tries    = 5                // against programs that write the file without our lock
)

// Read reads the file at path, following links as Edit does. A file that does not exist
// is an empty one.
func Read(path string) (*File, error) {
	p, err := findPlace("dotenv.Read", path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	now, err := p.read()
	switch {
	case errors.Is(err, errMoved):
		return nil, p.readError(err)
	case err != nil:
		return nil, err
	}
	return Parse(now.text), nil
}

// Edit lets change alter the file at path, and makes it if need be. At every moment the
// file is the old or the new one, also when the process is killed or the disk is full, and
// of several Edits at once none loses what another wrote. Afterwards the file is readable
// for its owner alone, who stays who it was. Where path is a symbolic link, the file that
// it leads to is edited. Without a change nothing is written.
//
// change may be called again, with the text as it is then, when a program that knows no
// lock wrote the file meanwhile. Its error ends Edit and is returned.
func Edit(ctx context.Context, path string, change func(*File) error) (changed bool, err error) {
	return editor{at: func(string) {}}.edit(ctx, path, change)
}

// MayEdit returns the error with which Edit would refuse the file at path, as far as that
// can be told without a write. A disk that is full it does not know.
func MayEdit(path string) error {
	p, err := findPlace("dotenv.MayEdit", path)
	if err != nil {
		return err
	}
	defer p.close()
	now, err := p.read()
	if errors.Is(err, errMoved) {
		return nil // somebody writes it, so it can be written
	}
	if err == nil {
		err = p.mayReplace(now)
	}
	if err != nil {
		return err
	}
	if err := p.dirWritable(); err != nil {
		return p.writeError(err)
	}
	return nil
}

// editor is Edit with a hook for tests.
type editor struct {
	at func(stage string) // called before each stage
}

func (e editor) edit(ctx context.Context, path string, change func(*File) error) (changed bool, err error) {
	p, err := findPlace("dotenv.Edit", path)
	if err != nil {
		return false, err
	}
	defer p.close()
	e.at("lock")
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, alone, err := p.lock(wait)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return false, p.fail(errs.Conflict, "wait until it has ended", "another program is editing %s", path)
	case err != nil:
		return false, p.fail(errs.Config, "", "lock %s: %w", path, err)
	}
	defer unlock()
	if alone {
		p.sweep()
	}
	for range tries {
		changed, err = e.once(ctx, p, change)
		if !errors.Is(err, errMoved) {
			return changed, err
		}
	}
	return false, p.fail(errs.Conflict, "close the program that writes it", "%s changes all the time", path)
}

// errMoved says that the file changed between reading and replacing it.
var errMoved = errors.New("changed meanwhile")

// once reads, changes and replaces the file.
func (e editor) once(ctx context.Context, p *place, change func(*File) error) (bool, error) {
	e.at("read")
	old, err := p.read()
	if err != nil {
		return false, err
	}
	f := Parse(old.text)
	if err := change(f); err != nil {
		return false, err
	}
	if !f.Changed() {
		return false, p.closeToOthers(old)
	}
	if err := p.mayReplace(old); err != nil {
		return false, err
	}
	if len(f.src) > maxFile {
		return false, p.fail(errs.Config, "", "%s would become larger than 1 MiB", p.path)
	}
	if err := e.replace(ctx, p, old, f.src); err != nil {
		return false, err
	}
	return true, nil
}

// replace puts text in the place of old.
func (e editor) replace(ctx context.Context, p *place, old content, text []byte) error {
	e.at("create")
	temp, err := p.create(old, text, e.at)
	if err != nil {
		return p.writeError(err)
	}
	defer p.discard(temp) // no error: after the rename there is none
	e.at("compare")
	now, err := p.read()
	if err != nil {
		return err
	}
	if (now.info == nil) != (old.info == nil) || !bytes.Equal(now.text, old.text) {
		return errMoved
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.at("rename")
	if err := p.dir.Rename(temp, p.base); err != nil {
		return p.writeError(err)
	}
	e.at("sync")
	return p.syncDir()
}

// content is a file as it was read; info is nil if there is none.
type content struct {
	text []byte
	info fs.FileInfo
}

// read reads the file and refuses what is no .env.
func (p *place) read() (content, error) {
	info, err := p.dir.Lstat(p.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return content{}, nil
	case err != nil:
		return content{}, p.readError(err)
	case info.IsDir():
		return content{}, p.fail(errs.Config, "name another file with --env-file", "%s is a directory", p.path)
	case !info.Mode().IsRegular():
		return content{}, p.fail(errs.Config, "name another file with --env-file", "%s is no regular file", p.path)
	}
	f, err := p.dir.Open(p.base)
	if err != nil {
		return content{}, p.readError(err)
	}
	defer func() { _ = f.Close() }() // read only
	opened, err := f.Stat()
	if err != nil {
		return content{}, p.readError(err)
	}
	if !os.SameFile(info, opened) {
		return content{}, errMoved
	}
	if err := p.mayFollow(opened); err != nil {
		return content{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return content{}, p.readError(err)
	case len(text) > maxFile:
		return content{}, p.fail(errs.Config, "name another file with --env-file", "%s is larger than 1 MiB", p.path)
	case bytes.IndexByte(text, 0) >= 0:
		return content{}, p.fail(errs.Config, "save it as UTF-8 text", "%s is no text: it holds a NUL byte", p.path)
	}
	return content{text: text, info: opened}, nil
}

func (p *place) readError(err error) error {
	hint := "name another file with --env-file"
	if errors.Is(err, fs.ErrPermission) {
		hint = "run 'chmod u+rw " + p.path + "', or as the user who owns it"
	}
	return p.fail(errs.Config, hint, "read %s: %w", p.path, cause(err))
}

func (p *place) writeError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return p.fail(errs.Config, "make its directory writable, or name another file with --env-file",
			"write %s: %w", p.path, cause(err))
	}
	return p.fail(errs.Internal, "the file is what it was; see to its disk and try again", "write %s: %w", p.path, cause(err))
}

// fail makes an error of this place's operation.
func (p *place) fail(kind errs.Kind, hint, format string, args ...any) error {
	return errs.New(p.op, kind, hint, format, args...)
}

// cause is err without the names of files, which would be those of temporary ones.
func cause(err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
