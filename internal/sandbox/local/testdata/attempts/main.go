//go:build linux

// Command attempts tries, from inside a sandbox, what an agent must not be able to
// do. It prints one line for each attempt: its name and the errno, or "ok".
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

type attempt func() error

// inotifyInstances takes all that there are, and returns how many.
func inotifyInstances() (n int) {
	for {
		if _, err := unix.InotifyInit1(0); err != nil {
			return n
		}
		n++
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "inotify" {
		fmt.Println(inotifyInstances())
		return
	}
	table := map[string]attempt{}
	maps.Copy(table, files())
	maps.Copy(table, processes())
	maps.Copy(table, kernel())
	for _, name := range slices.Sorted(maps.Keys(table)) {
		fmt.Println(name, nameOf(table[name]()))
	}
}

func nameOf(err error) string {
	if err == nil {
		return "ok"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func files() map[string]attempt {
	open := func(path string, flags int) attempt {
		return func() error {
			fd, err := unix.Open(path, flags, 0o600)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}
	}
	table := map[string]attempt{
		"write-usr":    open("/usr/canary", unix.O_CREAT|unix.O_WRONLY),
		"write-etc":    open("/etc/canary", unix.O_CREAT|unix.O_WRONLY),
		"write-root":   open("/canary", unix.O_CREAT|unix.O_WRONLY),
		"write-server": open("/opt/insights/bin/insights-agent-server", unix.O_WRONLY),
		"write-sysctl": open("/proc/sys/kernel/hostname", unix.O_WRONLY),
		"write-core":   open("/proc/sys/kernel/core_pattern", unix.O_WRONLY),
		"read-shadow":  open("/etc/shadow", unix.O_RDONLY),
		"read-ssh":     open("/etc/ssh", unix.O_RDONLY),
		"read-private": open("/etc/ssl/private", unix.O_RDONLY),
		"read-var":     open("/var/log", unix.O_RDONLY),
		"read-root":    open("/root/.bashrc", unix.O_RDONLY),
		"read-old":     open("/old", unix.O_RDONLY),
	}
	for _, name := range []string{"mem", "environ", "maps", "root", "cwd", "exe", "fd", "cmdline", "status"} {
		table["proc-1-"+name] = open("/proc/1/"+name, unix.O_RDONLY)
	}
	return table
}

func processes() map[string]attempt {
	pidfd := func(f func(fd int) error) attempt {
		return func() error {
			fd, err := unix.PidfdOpen(1, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return f(fd)
		}
	}
	return map[string]attempt{
		"ptrace-1": func() error { return unix.PtraceAttach(1) },
		"pidfd-getfd-1": pidfd(func(fd int) error {
			_, err := unix.PidfdGetfd(fd, 3, 0)
			return err
		}),
		"setns-1": pidfd(func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNS|unix.CLONE_NEWPID) }),
		"vm-read-1": func() error {
			b := make([]byte, 8)
			_, err := unix.ProcessVMReadv(1, []unix.Iovec{{Base: &b[0], Len: 8}},
				[]unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			return err
		},
		"prlimit-1": func() error {
			return unix.Prlimit(1, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 8, Max: 8}, nil)
		},
		"priority-1":    func() error { return unix.Setpriority(unix.PRIO_PROCESS, 1, 19) },
		"priority-user": func() error { return unix.Setpriority(unix.PRIO_USER, 0, 19) },
		"affinity-1": func() error {
			var set unix.CPUSet
			set.Set(0)
			return unix.SchedSetaffinity(1, &set)
		},
		"setuid-0":   func() error { return syscall.Setuid(0) },
		"setgroups":  func() error { return syscall.Setgroups([]int{0}) },
		"chroot":     func() error { return unix.Chroot("/tmp") },
		"hostname":   func() error { return unix.Sethostname([]byte("x")) },
		"unshare-u":  func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"unshare-ns": func() error { return unix.Unshare(unix.CLONE_NEWNS) },
	}
}

func kernel() map[string]attempt {
	raw := func(nr uintptr, args ...uintptr) attempt {
		return func() error {
			var a [6]uintptr
			copy(a[:], args)
			_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
	socket := func(family int) attempt {
		return func() error {
			fd, err := unix.Socket(family, unix.SOCK_RAW, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}
	}
	name := append([]byte("tmpfs"), 0)
	at := uintptr(unsafe.Pointer(&name[0]))
	return map[string]attempt{
		"mount":         func() error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") },
		"remount":       func() error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
		"umount":        func() error { return unix.Unmount("/tmp", unix.MNT_DETACH) },
		"mount-setattr": raw(unix.SYS_MOUNT_SETATTR, 0, at, 0, at, 32),
		"fsopen":        raw(unix.SYS_FSOPEN, at, 0),
		"open-tree":     raw(unix.SYS_OPEN_TREE, 0, at, 1),
		"move-mount":    raw(unix.SYS_MOVE_MOUNT, 0, at, 0, at, 0),
		"clone-user":    raw(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)),
		"clone3":        raw(unix.SYS_CLONE3, 0, 0),
		"bpf":           raw(unix.SYS_BPF, 0, 0, 0),
		"keyctl":        raw(unix.SYS_KEYCTL, 0, 0),
		"perf":          raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0),
		"io-uring":      raw(unix.SYS_IO_URING_SETUP, 1, 0),
		"kexec":         raw(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0),
		"userfaultfd":   raw(unix.SYS_USERFAULTFD, 0),
		"packet":        socket(unix.AF_PACKET),
		"vsock":         socket(unix.AF_VSOCK),
		"raw-icmp":      socket(unix.AF_INET),
		"route":         changeRoute,
		"loopback-80":   serve80,
		"signal-pid1":   signalPID1,
		"own-signal":    func() error { return unix.Kill(os.Getpid(), 0) },
	}
}

// changeRoute asks for a default route through lo.
func changeRoute() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	msg := []byte{28, 0, 0, 0, unix.RTM_NEWROUTE, 0, 5, 4, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0}
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 256)
	if _, _, err := unix.Recvfrom(fd, answer, 0); err != nil {
		return err
	}
	if errno := *(*int32)(unsafe.Pointer(&answer[unix.NLMSG_HDRLEN])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

func serve80() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet4{Port: 80})
}

// signalPID1 sends every signal to PID 1 and to what may be its threads. With one
// uid the kernel accepts and drops them; the test looks whether PID 1 lives.
func signalPID1() error {
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if err := unix.Kill(1, sig); err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
		for tid := 1; tid < 64; tid++ {
			_ = unix.Tgkill(1, tid, sig)
		}
	}
	return nil
}
