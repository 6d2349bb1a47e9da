//go:build !linux

package serverctl

// jailCommands adds nothing: sandboxes are on Linux.
func jailCommands(map[string]command) {}

// seclude does nothing: only Linux has sandboxes.
func seclude() error { return nil }
