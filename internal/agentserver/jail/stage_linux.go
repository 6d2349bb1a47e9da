package jail

import (
	"errors"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/seccomp"
	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// stage is what happens between the fork and the agent's program: a new user
// namespace, no capability in any set, limits, the system call filter, execve.
//
// It runs in the forked child itself. An executable of ours in between would cost
// one more start of the Go runtime for every command, which is a quarter of the
// time to the agent's first output. The price is the rule of every fork in Go: from
// clone to execve the child may not allocate, grow its stack or call what may, so
// all it needs is made before, and its functions are nosplit and make raw system
// calls only.
type stage struct {
	paths     []*byte // where the program may be, in order
	argv, env []*byte // ended by nil
	dir       *byte   // nil: stay

	stdio  [3]uintptr
	mapped uintptr // a byte comes when the ids have been mapped, or the end
	mapper uintptr // PID 1's end of it, of which the child has a copy
	said   uintptr // where a failure is told; execve closes it
	tty    bool

	setIDs   bool
	uid, gid uintptr
	caps     unix.CapUserHeader
	none     [2]unix.CapUserData
	limits   [4]stageLimit
	code     []byte
	filter   unix.SockFprog
}

type stageLimit struct {
	resource uintptr
	value    unix.Rlimit
}

// failure is what the child says: the phase and the errno.
type failure struct{ phase, errno uint32 }

// The phases of a stage.
const (
	phaseWalls   = 1
	phaseDir     = 2
	phaseProgram = 3
)

// softFiles is the usual limit of open files: PID 1's own has been raised by the Go
// runtime, and the former value is not known any more.
const softFiles = 65536

// newStage makes all that the child needs.
func newStage(w walls, spec proc.Spec) (*stage, error) {
	s := &stage{tty: spec.TTY, setIDs: !w.oneUID, uid: uintptr(w.uid), gid: uintptr(w.gid)}
	s.caps.Version = unix.LINUX_CAPABILITY_VERSION_3
	var err error
	if s.argv, err = syscall.SlicePtrFromStrings(spec.Argv); err != nil {
		return nil, err
	}
	if s.env, err = syscall.SlicePtrFromStrings(lastOnly(spec.Env)); err != nil {
		return nil, err
	}
	if s.paths, err = syscall.SlicePtrFromStrings(candidates(spec)); err != nil {
		return nil, err
	}
	s.paths = s.paths[:len(s.paths)-1]
	if spec.Dir != "" {
		if s.dir, err = syscall.BytePtrFromString(spec.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.setLimits(w); err != nil {
		return nil, err
	}
	s.code = []byte(seccomp.Program()) // aligned, as a string constant need not be
	if len(s.code) == 0 || len(s.code)%8 != 0 {
		return nil, errors.New("this build has no system call filter for " + runtime.GOARCH)
	}
	s.filter = unix.SockFprog{Len: uint16(len(s.code) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&s.code[0]))}
	return s, nil
}

// setLimits lowers limits, but for that of PID 1's own files; what is lower already
// stays.
func (s *stage) setLimits(w walls) error {
	nproc := w.nproc
	wanted := [3]struct {
		resource   int
		soft, hard uint64
	}{
		{unix.RLIMIT_CORE, 0, 0},
		{unix.RLIMIT_NPROC, nproc, nproc},
		{unix.RLIMIT_NOFILE, softFiles, unix.RLIM_INFINITY},
	}
	for i, want := range wanted {
		l := stageLimit{resource: uintptr(want.resource)}
		if err := unix.Getrlimit(want.resource, &l.value); err != nil {
			return err
		}
		if want.resource != unix.RLIMIT_NPROC || nproc > 0 {
			l.value.Max = min(l.value.Max, want.hard)
			l.value.Cur = min(l.value.Max, want.soft)
		}
		s.limits[i] = l
	}
	s.limits[3] = stageLimit{resource: unix.RLIMIT_FSIZE, value: w.files}
	return nil
}

// candidates are the paths that execvp would try. A relative one is relative to the
// working directory.
func candidates(spec proc.Spec) []string {
	name := spec.Argv[0]
	if name == "" || strings.Contains(name, "/") {
		return []string{name}
	}
	var search string
	for _, kv := range spec.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	var paths []string
	for dir := range strings.SplitSeq(search, ":") {
		if dir == "" {
			dir = "."
		}
		paths = append(paths, dir+"/"+name)
	}
	return paths
}

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// clone forks. In the child it does not return.
//
//go:noinline
//go:norace
//go:nocheckptr
func (s *stage) clone() (pid uintptr, errno syscall.Errno) {
	beforeFork()
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		afterFork()
		return pid, errno
	}
	afterForkInChild()
	s.run()
	return 0, 0
}

// run is the child.
//
//go:nosplit
//go:norace
func (s *stage) run() {
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, s.mapper, 0, 0)
	var mapped byte
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, s.mapped, uintptr(unsafe.Pointer(&mapped)), 1)
	if n != 1 || errno != 0 {
		s.fail(phaseWalls, unix.EPIPE)
	}
	if errno = s.identity(); errno != 0 {
		s.fail(phaseWalls, errno)
	}
	if s.dir != nil {
		if _, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(s.dir)), 0, 0); errno != 0 {
			s.fail(phaseDir, errno)
		}
	}
	if errno = s.files(); errno != 0 {
		s.fail(phaseWalls, errno)
	}
	if errno = s.confine(); errno != 0 {
		s.fail(phaseWalls, errno)
	}
	s.fail(phaseProgram, s.exec())
}

// identity empties the bounding set, which a new user namespace fills, takes the
// agent's ids, and gives up every capability; with the inheritable ones the ambient
// go. Undumpable again: until execve the memory is a copy of PID 1's.
//
//go:nosplit
//go:norace
func (s *stage) identity() syscall.Errno {
	for c := uintptr(0); ; c++ {
		_, _, errno := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if errno == unix.EINVAL && c > unix.CAP_SYS_ADMIN {
			break // past the last capability of this kernel
		}
		if errno != 0 {
			return errno
		}
	}
	if s.setIDs {
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESGID, s.gid, s.gid, s.gid); errno != 0 {
			return errno
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, s.uid, s.uid, s.uid); errno != 0 {
			return errno
		}
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&s.caps)), uintptr(unsafe.Pointer(&s.none)), 0)
	if errno != 0 {
		return errno
	}
	_, _, errno = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0)
	return errno
}

// files makes a session and the standard streams. The sources are above 2: PID 1
// keeps its own three open.
//
//go:nosplit
//go:norace
func (s *stage) files() syscall.Errno {
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); errno != 0 {
		return errno
	}
	for i := uintptr(0); i < 3; i++ {
		if _, _, errno := syscall.RawSyscall(unix.SYS_DUP3, s.stdio[i], i, 0); errno != 0 {
			return errno
		}
	}
	if !s.tty {
		return 0
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1)
	return errno
}

// confine sets the limits and the filter, which belong to what is left of the
// process: this thread.
//
//go:nosplit
//go:norace
func (s *stage) confine() syscall.Errno {
	for i := range s.limits {
		_, _, errno := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, s.limits[i].resource,
			uintptr(unsafe.Pointer(&s.limits[i].value)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	_, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&s.filter)), 0, 0, 0)
	return errno
}

// exec tries the candidates as execvp does: what is missing is passed over, what may
// not be executed is remembered.
//
//go:nosplit
//go:norace
func (s *stage) exec() syscall.Errno {
	result := unix.ENOENT
	for i := range s.paths {
		_, _, errno := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(s.paths[i])),
			uintptr(unsafe.Pointer(&s.argv[0])), uintptr(unsafe.Pointer(&s.env[0])))
		switch errno {
		case unix.ENOENT, unix.ENOTDIR:
		case unix.EACCES:
			result = errno
		default:
			return errno
		}
	}
	return result
}

// fail tells PID 1 and ends the child.
//
//go:nosplit
//go:norace
func (s *stage) fail(phase uint32, errno syscall.Errno) {
	f := failure{phase, uint32(errno)}
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, s.said, uintptr(unsafe.Pointer(&f)), unsafe.Sizeof(f))
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
	}
}
