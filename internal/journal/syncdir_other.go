//go:build !unix

package journal

// syncDir does nothing: a directory cannot be synced on this platform, its entries
// are journalled by the file system.
func syncDir(string) error { return nil }
