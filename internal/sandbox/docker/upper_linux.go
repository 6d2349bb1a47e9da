package docker

import "golang.org/x/sys/unix"

// holdsUpper reports whether an overlay's upper directory may lie in dir: on a local
// disk file system with the attributes that overlayfs needs.
func holdsUpper(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}
