//go:build linux || darwin

package doctor

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeSpace is what an ordinary user may still write at dir.
func freeSpace(dir string) (free uint64, known bool, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false, fmt.Errorf("ask for free space at %s: %w", dir, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), s.Blocks > 0, nil // /proc has no blocks
}

// writable reports why nothing can be made in a directory.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
