//go:build !linux && !darwin

package doctor

// freeSpace cannot be told here.
func freeSpace(string) (free uint64, known bool, err error) { return 0, false, nil }

// writable cannot be told without a write.
func writable(string) error { return nil }
