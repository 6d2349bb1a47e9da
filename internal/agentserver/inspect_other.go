//go:build !linux

package agentserver

// dumpable is true: only Linux has sandboxes.
func dumpable() bool { return true }
