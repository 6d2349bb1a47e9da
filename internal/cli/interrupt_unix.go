//go:build !windows

package cli

import (
	"os"
	"syscall"
)

// interruptSelf does what Ctrl-C does where the terminal makes a signal of it.
func interruptSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }
