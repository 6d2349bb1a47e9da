// Package filelock locks open files between processes: flock where there is one,
// LockFileEx on Windows. The kernel drops a lock with its file, on any death of the
// process. Unlike github.com/gofrs/flock it leaves the handle with the caller, who
// writes into the locked file, and on Windows locks a byte far behind the end, so
// that others can still read the file.
package filelock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Mode says whether a lock keeps everybody out or only those who want it alone.
type Mode int

// The modes of a lock.
const (
	Exclusive Mode = iota
	Shared
)

// poll is how often a lock that somebody holds is tried again.
const poll = 2 * time.Millisecond

// Try takes the lock of f unless somebody holds it, through whichever handle. It
// reports whether it did.
func Try(f *os.File, mode Mode) (bool, error) {
	ok, err := try(f, mode)
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return ok, nil
}

// Lock waits until it has the lock of f or ctx is done.
func Lock(ctx context.Context, f *os.File, mode Mode) error {
	t := time.NewTicker(poll)
	defer t.Stop()
	for {
		if ok, err := Try(f, mode); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}
