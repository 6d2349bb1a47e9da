package proc

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// As runs fn with the file system identity of uid and gid, without the file
// capabilities of root: what fn opens, makes and looks up is the agent's or allowed
// to the agent. fn must stay on its goroutine. A server that is not root has one
// identity, and fn runs with it.
func As(uid, gid int, fn func() error) error {
	if unix.Geteuid() != 0 || uid == 0 {
		return fn()
	}
	runtime.LockOSThread() // the identity belongs to the thread
	defer runtime.UnlockOSThread()
	oldGID, _ := unix.SetfsgidRetGid(gid)
	oldUID, _ := unix.SetfsuidRetUid(uid)
	defer func() {
		_, _ = unix.SetfsuidRetUid(oldUID)
		_, _ = unix.SetfsgidRetGid(oldGID)
	}()
	return fn()
}
