//go:build unix

package owner

import (
	"syscall"
	"testing"
)

// TestStoppedOwnerIsAlive: a process that was stopped (Ctrl-Z, a debugger) goes on
// later and must not be robbed.
func TestStoppedOwnerIsAlive(t *testing.T) {
	dir := t.TempDir()
	cmd, id := process(t, dir)
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	wantState(t, dir, id, StateAlive)
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	wantState(t, dir, id, StateAlive)
}
