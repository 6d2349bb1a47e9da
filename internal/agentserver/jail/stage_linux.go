package jail

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/seccomp"
	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// sayFD is the pipe on which a stage says why it failed: "ERRNO text", where ERRNO
// is that of looking up or executing the program, sayNotFound, or 0 for all else.
const (
	sayFD       = 3
	sayNotFound = "-"
)

// stageFailed is the exit code of a stage that did not become the program. Nobody
// but PID 1 sees it.
const stageFailed = 126

// Stage turns the process into one of the agent: it gives up what a new user
// namespace brought, sets the limits and the system call filter, and executes
// args[1:] with env (args[0] is the limit of processes). It returns only when it
// failed, with the exit code; PID 1 has been told why.
func Stage(args, env []string) int {
	unix.CloseOnExec(sayFD)
	err := stage(args, env)
	var errno syscall.Errno
	code := "0"
	switch program := (*programError)(nil); {
	case !errors.As(err, &program):
	case errors.As(err, &errno):
		code = strconv.Itoa(int(errno))
	default:
		code = sayNotFound
	}
	_, _ = unix.Write(sayFD, []byte(code+" "+err.Error()))
	return stageFailed
}

// programError is a failure that is about the program, not about us.
type programError struct{ error }

// Unwrap gives the cause.
func (e *programError) Unwrap() error { return e.error }

func stage(args, env []string) error {
	if len(args) < 2 {
		return errors.New("stage: no command")
	}
	nproc, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	argv := args[1:]
	path, err := proc.LookPath(proc.Spec{Argv: argv, Env: env})
	if err != nil {
		if errors.Is(err, proc.ErrNotExecutable) {
			err = unix.EACCES
		}
		return &programError{err}
	}
	// Filter and capabilities belong to the thread. The others end at execve.
	runtime.LockOSThread()
	if err := confine(nproc); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return &programError{syscall.Exec(path, argv, env)}
}

func confine(nproc uint64) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > unix.CAP_SYS_ADMIN {
			break // past the last capability of this kernel
		}
		if err != nil {
			return os.NewSyscallError("drop bounding set", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if err := limit(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	if nproc > 0 {
		if err := limit(unix.RLIMIT_NPROC, nproc); err != nil {
			return err
		}
	}
	return filter(seccomp.Program())
}

// limit lowers a resource limit; one that is lower already stays.
func limit(resource int, to uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	to = min(to, now.Max)
	return os.NewSyscallError("setrlimit", unix.Setrlimit(resource, &unix.Rlimit{Cur: to, Max: to}))
}

// filter installs the system call filter on this thread. The program is in the
// kernel's own form, eight bytes an instruction.
func filter(program string) error {
	if program == "" || len(program)%8 != 0 {
		return errors.New("this build has no system call filter for " + runtime.GOARCH)
	}
	code := []byte(program) // aligned, as a string constant need not be
	prog := unix.SockFprog{Len: uint16(len(code) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	runtime.KeepAlive(code)
	return os.NewSyscallError("seccomp", err)
}
