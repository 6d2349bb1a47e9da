package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/sandbox"
)

var _ sandbox.Overlayer = (*Provider)(nil)

// CanOverlay implements sandbox.Overlayer by making one. Only root can: in a user
// namespace the kernel refuses redirect_dir, and without that a directory cannot be
// renamed.
func (p *Provider) CanOverlay(ctx context.Context, dir string) bool {
	if os.Geteuid() != 0 || ctx.Err() != nil {
		return false
	}
	temp, err := os.MkdirTemp(dir, ".overlay-*")
	if err != nil {
		return false
	}
	defer func() { _ = removeTree(temp) }()
	m := sandbox.Mount{Source: filepath.Join(temp, "lower"), Upper: filepath.Join(temp, "upper"), Work: filepath.Join(temp, "work")}
	if os.Mkdir(m.Source, 0o700) != nil {
		return false
	}
	f, err := overlay(m)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// overlay makes the overlay of m in the initial user namespace, attached nowhere.
// Missing upper and work directories are made; the upper one gets the owner and
// mode of the source, because it is what the sandbox sees as the root of the mount.
func overlay(m sandbox.Mount) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Stat(m.Source, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: m.Source, Err: err}
	}
	err := os.Mkdir(m.Upper, os.FileMode(st.Mode&0o777))
	if err == nil {
		err = os.Lchown(m.Upper, int(st.Uid), int(st.Gid))
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := os.Mkdir(m.Work, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen overlay", err)
	}
	defer func() { _ = unix.Close(fs) }()
	options := [][2]string{{"lowerdir", m.Source}, {"upperdir", m.Upper}, {"workdir", m.Work}, {"redirect_dir", "on"}}
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return nil, os.NewSyscallError("fsconfig "+o[0], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, os.NewSyscallError("fsconfig create overlay", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, os.NewSyscallError("fsmount overlay", err)
	}
	return os.NewFile(uintptr(fd), "overlay"), nil
}
