//go:build unix

package dotenv

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
)

// lock takes the lock of the directory, which leaves nothing behind. On file systems that
// lock no directories (NFS) it goes without, and alone is false: what protects then is that
// the file is compared right before it is replaced.
func (p *place) lock(ctx context.Context) (unlock func(), alone bool, err error) {
	d, err := p.dir.Open(".")
	if err != nil {
		return nil, false, err
	}
	unlock = func() { _ = d.Close() } // nothing was written
	err = filelock.Lock(ctx, d, filelock.Exclusive)
	for _, cannot := range []error{syscall.EBADF, syscall.EINVAL, syscall.ENOLCK, syscall.ENOSYS, syscall.ENOTSUP, syscall.EOPNOTSUPP} {
		if errors.Is(err, cannot) {
			return unlock, false, nil
		}
	}
	if err != nil {
		unlock()
		return nil, false, err
	}
	return unlock, true, nil
}

func ownerOf(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// keepOwner gives f the owner and group of the old file. A new one that root makes gets
// those of the directory: root in a user's checkout is that user with sudo.
func (p *place) keepOwner(f *os.File, old content) error {
	like := old.info
	if like == nil {
		if os.Geteuid() != 0 {
			return nil
		}
		info, err := p.dir.Stat(".")
		if err != nil {
			return err
		}
		like = info
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	uid, gid, _ := ownerOf(like)
	if u, g, _ := ownerOf(now); u == uid && g == gid {
		return nil
	}
	err = f.Chown(uid, gid)
	if os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
		return nil // a group that we are not in has no rights here anyway
	}
	return err
}

// dirWritable reports why no file can be made in the directory.
func (p *place) dirWritable() error { return unix.Access(p.dir.Name(), unix.W_OK|unix.X_OK) }

// syncDir makes the new name last, on file systems that can say so.
func (p *place) syncDir() error {
	d, err := p.dir.Open(".")
	if err == nil {
		err = d.Sync()
		_ = d.Close() // read only
	}
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return p.fail(errs.Internal, "", "%s is written, but may not outlast a crash of this machine: %w", p.path, cause(err))
	}
	return nil
}
