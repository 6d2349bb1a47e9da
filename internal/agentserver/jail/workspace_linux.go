package jail

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/link/wire"
)

// late makes the mounts that can be written, and those below what can.
func (b *rootBuilder) late() error {
	for _, m := range b.Mounts {
		if m.ReadOnly && !b.isLate(m.Target) {
			continue
		}
		if err := b.mount(m); err != nil {
			return err
		}
		attr := uint64(writable)
		if m.ReadOnly {
			attr = sealed
		}
		if err := setAttr(newRoot+m.Target, attr); err != nil {
			return step(plan.StepMount, err)
		}
	}
	return nil
}

// point makes the mount point of m. Inside an earlier mount nothing is made: that
// would be a change of the host's files.
func (b *rootBuilder) point(m plan.Mount) error {
	for _, dir := range b.made {
		if !below(m.Target, dir) {
			continue
		}
		return step(plan.StepMount, plainPath(m.Target, dir))
	}
	source := oldRoot + m.Source
	if m.Source == "" {
		source = oldRoot // a detached mount is a directory
	}
	if b.isLate(m.Target) {
		if err := b.ownDir(filepath.Dir(m.Target)); err != nil {
			return step(plan.StepMount, err)
		}
	}
	return step(plan.StepMount, mountPoint(source, newRoot+m.Target))
}

// plainPath makes sure that target is there, and there itself: a link in what is
// mounted at dir would take the mount to another place.
func plainPath(target, dir string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, newRoot+target, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%s is or leads through a symbolic link in the mounted %s: %w", target, dir, err)
	case err != nil:
		return fmt.Errorf("%s does not exist in the mounted %s: %w", target, dir, err)
	}
	return unix.Close(fd)
}

func (b *rootBuilder) mount(m plan.Mount) error {
	if err := b.point(m); err != nil {
		return err
	}
	var err error
	if m.Source == "" {
		fd := plan.FirstFD + m.FD
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, newRoot+m.Target, unix.MOVE_MOUNT_F_EMPTY_PATH)
		err = errors.Join(pathError("move_mount", m.Target, err), unix.Close(fd))
		b.made = append(b.made, m.Target)
	} else {
		err = b.bind(m.Source, m.Target)
	}
	return step(plan.StepMount, err)
}

// bind shows the host's source at target inside.
func (b *rootBuilder) bind(source, target string) error {
	return b.keep(target, bindExact(source, newRoot+target))
}

// bindSystem is bind for what only root can change.
func (b *rootBuilder) bindSystem(path string) error { return b.keep(path, bind(path, newRoot+path)) }

// keep notes where something of the host has been mounted.
func (b *rootBuilder) keep(target string, err error) error {
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, target)
	return nil
}

// link shows the directory that the host and PID 1 share. PID 1 listens already, and
// nobody inside has anything to write there: an agent of the same uid could replace
// the socket, and fill the host's disk.
func (b *rootBuilder) link() error {
	target := newRoot + wire.LinkDir
	if err := mkdir(target); err != nil {
		return step(plan.StepFiles, err)
	}
	if err := bind(b.LinkDir, target); err != nil {
		return step(plan.StepBind, err)
	}
	return step(plan.StepBind, setAttr(target, sealed|unix.MOUNT_ATTR_NOEXEC))
}
