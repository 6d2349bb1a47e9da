package jail

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that PID 1 keeps where it has another uid than the
// agent: it starts and ends processes of that uid.
const kept = 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID

// setCaps makes mask the permitted and effective capabilities of every thread. With
// an empty inheritable set the ambient one goes too.
func setCaps(mask uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: mask, Permitted: mask}}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
	return errnoError("capset", errno)
}

// noNewPrivs sets the flag in every thread: no file can raise what one may do.
func noNewPrivs() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	return errnoError("no_new_privs", errno)
}

// emptyBounding drops everything from every thread's bounding set that is in it.
// Each drop stops the world, so only what is there is dropped.
func emptyBounding() error {
	for c := uintptr(0); c <= 63; c++ {
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return nil // past the last capability of this kernel
		}
		if in == 0 {
			continue
		}
		if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); errno != 0 {
			return errnoError("drop bounding set", errno)
		}
	}
	return nil
}

func errnoError(op string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return os.NewSyscallError(op, errno)
}

// setDumpable says whether processes of the same uid may look into this one, as far
// as nothing else forbids it. It holds for the whole process.
func setDumpable(on uintptr) error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, on, 0, 0, 0))
}

// kernelSigaction is struct sigaction of rt_sigaction(2); all zero is SIG_DFL.
type kernelSigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// defaultSignals gives every signal its default action, behind the Go runtime's
// back: the kernel drops default-action signals sent to PID 1 from its namespace,
// but runs a handler, and the runtime's handlers for SEGV, BUS and FPE end the
// process. What the runtime itself lives on stays.
func defaultSignals() error {
	const internal = 32 // to 34: used by libc, and by AllThreadsSyscall in cgo programs
	for sig := uintptr(1); sig <= 64; sig++ {
		switch syscall.Signal(sig) {
		case unix.SIGCHLD, unix.SIGURG, unix.SIGKILL, unix.SIGSTOP, internal, internal + 1, internal + 2:
			continue
		}
		var dfl kernelSigaction
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&dfl)), 0, 8, 0, 0)
		if errno != 0 {
			return errnoError("rt_sigaction", errno)
		}
	}
	return nil
}
