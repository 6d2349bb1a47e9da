package docker

import (
	"os"

	"golang.org/x/sys/unix"
)

// sameMachine reports whether an engine behind a unix socket that calls itself name
// and runs on kernel is this machine. A virtual machine (Docker Desktop, colima)
// differs in one of the two; so does the host of a container that was given the
// host's socket. Where both are equal by chance the engine does not find the bound
// directories, and Create takes the other transport.
func sameMachine(name, kernel string) bool {
	host, err := os.Hostname()
	if err != nil || host != name {
		return false
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return unix.ByteSliceToString(u.Release[:]) == kernel
}

// hasIPv6 reports whether this kernel has IPv6 at all.
func hasIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return err == nil
}
