package probe

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
)

func look(ctx context.Context) (wire.Look, error) {
	l := wire.Look{Calls: tryCalls(), PID1: tryPID1(), Sockets: sockets(ctx), Runs: errName(runsFrom("/tmp"))}
	flag, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	l.NoNewPrivs = err == nil && flag == 1
	// The kernel answers 0 for no filter; a filter that forbids the question is one, too.
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	if l.Seccomp = mode; err != nil {
		l.Seccomp = unix.SECCOMP_MODE_FILTER
	}
	l.Interfaces, err = interfaces()
	return l, err
}

func asErrno(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return "errno " + strconv.Itoa(int(errno))
}

func interfaces() ([]wire.Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	all := make([]wire.Interface, 0, len(list))
	for _, i := range list {
		one := wire.Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			one.Addresses = append(one.Addresses, a.String())
		}
		all = append(all, one)
	}
	return all, nil
}

// runsFrom reports why no program in dir could be run: to map a file there as code is what
// a mount without that right refuses.
func runsFrom(dir string) error {
	f, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	if err := f.Truncate(int64(os.Getpagesize())); err != nil {
		return err
	}
	code, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return unix.Munmap(code)
}

// maxFiles bounds the search for sockets.
const maxFiles = 50_000

// sockets finds the sockets of others that somebody listens at, also behind a door that is
// closed to the agent.
func sockets(ctx context.Context) []string {
	var found []string
	left := maxFiles
	for _, root := range []string{"/run", "/var", "/tmp", "/home", "/dev", "/root", "/mnt", "/srv"} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // what cannot be read is passed over
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err != nil || d.Type()&fs.ModeSocket == 0 || filepath.Dir(path) == wire.LinkDir {
				return nil
			}
			if heard(ctx, path) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// heard reports whether somebody listens at a socket: all but a clear no counts.
func heard(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, network := range []string{"unix", "unixgram", "unixpacket"} {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, path)
		if err == nil {
			_ = conn.Close() // nothing was written
			return true
		}
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EPROTOTYPE) && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// tryPID1 tries to get at PID 1.
func tryPID1() map[string]string {
	read := func(path string) string {
		f, err := os.Open(path)
		if err != nil {
			return errName(err)
		}
		defer func() { _ = f.Close() }()
		if strings.HasSuffix(path, "/mem") {
			return "" // nothing is at its beginning; to have it open is enough
		}
		_, err = f.Read(make([]byte, 1))
		return errName(err)
	}
	out := map[string]string{}
	for _, name := range []string{"mem", "environ", "maps", "auxv", "syscall"} {
		out["read "+name] = read("/proc/1/" + name)
	}
	for _, name := range []string{"exe", "cwd", "root"} {
		_, err := os.Readlink("/proc/1/" + name)
		out["readlink "+name] = errName(err)
	}
	// The numbers of its descriptors may be listed by who has its uid; they lead nowhere.
	for fd := range 32 {
		path := "/proc/1/fd/" + strconv.Itoa(fd)
		if _, err := os.Readlink(path); err == nil {
			out["readlink fd"] = ""
		}
	}
	for name, flag := range map[string]int{"user": unix.CLONE_NEWUSER, "mnt": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET} {
		fd, err := unix.Open("/proc/1/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, flag)
			unix.Close(fd)
		}
		out["setns "+name] = errName(err)
	}
	out["ptrace"] = trace(1)
	return out
}

// trace attaches to a process, and lets it go again.
func trace(pid int) string {
	_, _, errno := syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
	if errno == 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, 0, 0, 0)
		return ""
	}
	return errName(errno)
}

// isSandboxName reports whether a name may become part of a path.
func isSandboxName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
