package cli

import "syscall"

// ownSession detaches a process from the console of its parent.
func ownSession() *syscall.SysProcAttr {
	const detachedProcess, newProcessGroup = 0x8, 0x200
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | newProcessGroup, HideWindow: true}
}

// keepDescriptors does nothing: a handle is passed on only where it is named.
func keepDescriptors() {}
