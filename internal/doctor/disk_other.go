//go:build !linux && !darwin

package doctor

// freeSpace cannot be told here.
func freeSpace(string) (free uint64, known bool, err error) { return 0, false, nil }
