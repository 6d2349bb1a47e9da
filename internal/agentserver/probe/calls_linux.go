package probe

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tryCalls makes the system calls that no agent needs and that have led out of sandboxes.
// Each is harmless where it succeeds, and is undone.
func tryCalls() map[string]string {
	out := map[string]string{}
	for name, try := range map[string]func() error{
		"io_uring_setup": ioUring,
		"unshare user":   func() error { return forked(unix.CLONE_NEWUSER) },
		"unshare mount":  func() error { return forked(unix.CLONE_NEWNS) },
		"unshare net":    func() error { return forked(unix.CLONE_NEWNET) },
		"mount": func() error {
			return undone(unix.Mount("none", "/tmp", "tmpfs", 0, ""), func() { _ = unix.Unmount("/tmp", 0) })
		},
		"remount": func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
		"umount":  func() error { return unix.Unmount("/proc", unix.MNT_DETACH) },
		"fsopen":  func() error { return closed(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)) },
		"open_tree": func() error {
			return closed(unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
		},
		"chroot":              func() error { return unix.Chroot("/") },
		"pivot_root":          func() error { return unix.PivotRoot("/", "/") },
		"mknod":               mknod,
		"bpf":                 func() error { return raw(unix.SYS_BPF, 0) },
		"perf_event_open":     perf,
		"keyctl":              func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err },
		"init_module":         func() error { return raw(unix.SYS_FINIT_MODULE, ^uintptr(0)) },
		"kexec_load":          func() error { return raw(unix.SYS_KEXEC_LOAD, 0) },
		"open_by_handle_at":   handle,
		"setuid 0":            func() error { return setuid() },
		"setgroups":           func() error { return raw(unix.SYS_SETGROUPS, 0) },
		"capset":              raise,
		"sethostname":         func() error { return unix.Sethostname([]byte("probe")) },
		"write /proc/sys":     func() error { return writable("/proc/sys/kernel/core_pattern") },
		"write sysrq-trigger": func() error { return writable("/proc/sysrq-trigger") },
		"open kcore":          func() error { return readable("/proc/kcore") },
		"open kmsg":           func() error { return readable("/dev/kmsg") },
		"open mem":            func() error { return readable("/dev/mem") },
		"socket AF_ALG":       func() error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
		"socket AF_VSOCK":     func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
		"socket AF_PACKET":    func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
		"socket AF_XDP":       func() error { return socket(unix.AF_XDP, unix.SOCK_RAW, 0) },
		"socket AF_TIPC":      func() error { return socket(unix.AF_TIPC, unix.SOCK_SEQPACKET, 0) },
		"socket AF_BLUETOOTH": func() error { return socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1) },
		"socket raw":          func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
		"socket raw 6":        func() error { return socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6) },
	} {
		out[name] = errName(try())
	}
	return out
}

// raw makes a call whose other arguments are 0.
func raw(number, first uintptr) error {
	_, _, errno := syscall.RawSyscall(number, first, 0, 0)
	if errno == 0 {
		return nil
	}
	return errno
}

func ioUring() error {
	var params [120]byte // struct io_uring_params
	fd, _, errno := syscall.RawSyscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return errno
	}
	unix.Close(int(fd))
	return nil
}

func socket(family, kind, protocol int) error { return closed(unix.Socket(family, kind, protocol)) }

func closed(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func undone(err error, undo func()) error {
	if err == nil {
		undo()
	}
	return err
}

// forked makes a process in new namespaces, which ends at once. No filter lets the flags
// through where it would not do so for unshare, which a program of several threads may not
// call.
func forked(flags uintptr) error {
	pid, errno := cloneAndEnd(flags)
	if errno != 0 {
		return errno
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

//go:noinline
//go:norace
func cloneAndEnd(flags uintptr) (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// mknod makes the device of the first disk.
func mknod() error {
	const path = "/tmp/probe-device"
	return undone(unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))), func() { _ = os.Remove(path) })
}

func perf() error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK}
	attr.Size = uint32(unsafe.Sizeof(attr))
	return closed(unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC))
}

// handle opens a file by its number, which knows no roots. The number is none, which is
// looked at after the right to ask.
func handle() error {
	return closed(unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, make([]byte, 8)), unix.O_RDONLY))
}

// setuid becomes root, in this one thread, which ends with the goroutine.
func setuid() error { return onOwnThread(func() error { return raw(unix.SYS_SETRESUID, 0) }) }

// raise takes every capability.
func raise() error {
	return onOwnThread(func() error {
		all := ^uint32(0)
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: all, Permitted: all}, {Effective: 0x1ff, Permitted: 0x1ff}}
		return unix.Capset(&header, &data[0])
	})
}

func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is thrown away
		done <- f()
	}()
	return <-done
}

func writable(path string) error { return opens(path, os.O_WRONLY) }
func readable(path string) error { return opens(path, os.O_RDONLY) }

func opens(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return err
}
