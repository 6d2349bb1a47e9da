//go:build unix

package repo

import (
	"os"
	"os/exec"
	"syscall"
)

// owner is a user that a process runs as.
type owner struct{ uid, gid int }

// detach gives the process its own session, so that no child of it finds a terminal
// to prompt on and a Ctrl-C is ours to act on, and makes the end of its context the
// end of the whole group (git starts ssh, remote helpers and pack threads).
func detach(cmd *exec.Cmd, as *owner) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// ownerOf returns who owns a file.
func ownerOf(fi os.FileInfo) (owner, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{}, false
	}
	return owner{uid: int(st.Uid), gid: int(st.Gid)}, true
}
