package jail

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Where things lie while the root is being built: the host under oldRoot, the
// sandbox under newRoot, all in a tmpfs that is the root meanwhile.
const (
	oldRoot = "/old"
	newRoot = "/new"
	scratch = "/scratch" // and a number: what can be written, shown in newRoot
)

// sealed are the attributes of everything read-only; writable mounts lack the first.
const (
	sealed   = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// setAttr gives the mount at path, and all below it, the attributes, and cuts them
// off from later mounts on the host.
func setAttr(path string, attr uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW,
		&unix.MountAttr{Attr_set: attr, Propagation: unix.MS_PRIVATE})
	return pathError("mount_setattr", path, err)
}

// bind mounts the host's source at target, with all that is mounted below it: in a
// user namespace the kernel refuses to uncover what lies under a locked mount.
func bind(source, target string) error {
	return pathError("bind", source, unix.Mount(oldRoot+source, target, "", unix.MS_BIND|unix.MS_REC, ""))
}

// bindExact is bind for a source that others than root can change: a component that
// has become a symbolic link since the host resolved it is refused, not followed.
func bindExact(source, target string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, oldRoot+source, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return pathError("open", source, err)
	}
	defer unix.Close(fd)
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	tree, err := unix.OpenTree(fd, "", flags)
	if err != nil {
		return pathError("open_tree", source, err)
	}
	defer unix.Close(tree)
	return pathError("move_mount", source, unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// mkdir makes path and its parents, 0755.
func mkdir(path string) error { return os.MkdirAll(path, 0o755) }

// mountPoint makes target, with its parents, as a directory or an empty file, to
// match the source. What exists is left alone.
func mountPoint(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return mkdir(target)
	}
	if err := mkdir(filepath.Dir(target)); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
