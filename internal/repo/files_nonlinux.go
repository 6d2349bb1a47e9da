//go:build !linux

package repo

import (
	"errors"
	"os"
	"time"
)

// clone shares blocks on Linux only; elsewhere files are copied.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }

// bootID is known on Linux only.
func bootID() string { return "" }

func ctimeOf(fi os.FileInfo) time.Time { return fi.ModTime() }
