//go:build !linux

package docker

// sameMachine is false where containers need a virtual machine.
func sameMachine(string, string) bool { return false }

// hasIPv6 is not asked for an engine of another machine.
func hasIPv6() bool { return true }
