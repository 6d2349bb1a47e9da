//go:build unix

package statedb

import (
	"io/fs"
	"syscall"
)

// hasModes tells whether permission bits mean anything here.
const hasModes = true

// ownerOf returns the user id that owns a file.
func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
