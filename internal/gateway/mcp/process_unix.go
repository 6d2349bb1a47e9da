//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives the process a group of its own: an interrupt at the terminal is for us,
// and what the process started can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup asks the group of p to end, or ends it.
func signalGroup(p *os.Process, force bool) {
	sig := syscall.SIGTERM
	if force {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-p.Pid, sig)
}
