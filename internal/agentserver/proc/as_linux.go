package proc

import (
	"errors"
	"os"
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
	oldGID, err := unix.SetfsgidRetGid(gid)
	if errors.Is(err, unix.ENOSYS) {
		return asEffective(uid, gid, fn)
	}
	oldUID, _ := unix.SetfsuidRetUid(uid)
	defer func() {
		_, _ = unix.SetfsuidRetUid(oldUID)
		_, _ = unix.SetfsgidRetGid(oldGID)
	}()
	return fn()
}

// asEffective is As on kernels that have no identity for files alone (gVisor). The
// effective one of this thread does as well: with it go the effective capabilities, which
// come back with root. Its caller has locked the thread.
func asEffective(uid, gid int, fn func() error) error {
	const keep = ^uintptr(0)
	set := func(call string, number, id uintptr) error {
		if _, _, errno := unix.RawSyscall(number, keep, id, keep); errno != 0 {
			return os.NewSyscallError(call, errno)
		}
		return nil
	}
	if err := set("setresgid", unix.SYS_SETRESGID, uintptr(gid)); err != nil {
		return err
	}
	err := set("setresuid", unix.SYS_SETRESUID, uintptr(uid))
	if err == nil {
		err = fn()
	}
	return errors.Join(err, set("setresuid", unix.SYS_SETRESUID, 0), set("setresgid", unix.SYS_SETRESGID, 0))
}
