package statedb

import "golang.org/x/sys/unix"

// networkFS names the file system of dir if it is one where SQLite's WAL (shared
// memory) and flock cannot be relied on, else returns "". virtiofs reports itself
// as fuse.
func networkFS(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "" // what is wrong will show when the database is opened
	}
	return fsName(uint32(st.Type)) //nolint:unconvert // the type differs between architectures
}

func fsName(magic uint32) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.CIFS_SUPER_MAGIC:
		return "cifs"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	}
	return ""
}
