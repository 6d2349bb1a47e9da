package statedb

import (
	"strings"

	"golang.org/x/sys/unix"
)

// networkFS names the file system of dir if it is one where SQLite's WAL (shared
// memory) and flock cannot be relied on, else returns "".
func networkFS(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "" // what is wrong will show when the database is opened
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	switch name {
	case "nfs", "smbfs", "afpfs", "webdav", "virtiofs", "9p":
		return name
	}
	if strings.Contains(name, "fuse") {
		return "fuse"
	}
	return ""
}
