//go:build !linux

package journal

import "os"

// syncData makes the bytes and the size of f durable.
func syncData(f *os.File) error { return f.Sync() }
