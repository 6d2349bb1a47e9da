//go:build linux || darwin

package doctor

import (
	"fmt"
	"syscall"
)

// freeSpace is what an ordinary user may still write at dir.
func freeSpace(dir string) (free uint64, known bool, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false, fmt.Errorf("ask for free space at %s: %w", dir, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true, nil
}
