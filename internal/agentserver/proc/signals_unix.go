//go:build unix

package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// modesMeanNothing: files have no executable bits here.
const modesMeanNothing = false

// SignalName returns "SIGKILL" and the like, or "" for 0.
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// SignalByName is the reverse of [SignalName]; 0 means there is none of that name.
func SignalByName(name string) syscall.Signal { return unix.SignalNum(name) }
