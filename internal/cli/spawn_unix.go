//go:build !windows

package cli

import "syscall"

// ownSession gives a process a session of its own, so that the end of a terminal
// does not reach it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
