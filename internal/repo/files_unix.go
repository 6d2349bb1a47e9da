//go:build unix

package repo

import (
	"time"

	"golang.org/x/sys/unix"
)

// setTime sets the modification time of a file, or of a link itself.
func setTime(p string, at time.Time) error {
	ts, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
