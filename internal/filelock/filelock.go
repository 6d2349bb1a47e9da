// Package filelock locks open files between processes: flock where there is one,
// LockFileEx on Windows. The kernel drops a lock with its file, on any death of the
// process, and a lock is given back by closing the file. The caller may write into the
// locked file, and others may read it: on Windows a byte far behind the end is locked.
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

// A lock that somebody holds is tried again after firstPause, and less and less often.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 20 * time.Millisecond
)

// TryPath opens the file at path, making it if need be, and takes its lock. It returns
// no file when somebody holds the lock.
func TryPath(path string, mode Mode) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if ok, err := Try(f, mode); err != nil || !ok {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// LockPath is TryPath that waits until it has the lock or ctx is done.
func LockPath(ctx context.Context, path string, mode Mode) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := Lock(ctx, f, mode); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

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
	t := time.NewTimer(0)
	defer t.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if ok, err := Try(f, mode); ok || err != nil {
			return err
		}
		t.Reset(pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}
