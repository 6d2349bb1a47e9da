//go:build !linux

package docker

// holdsUpper is false where the engine does not share the file system.
func holdsUpper(string) bool { return false }
