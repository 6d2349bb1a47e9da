//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func noContext() context.Context { return context.Background() }

// escapes are ways to become somebody, or to be somewhere, that may do more.
func escapes() map[string]func([]string) error {
	return map[string]func([]string) error{
		"ptrace": onPID(func(pid int) error {
			runtime.LockOSThread()
			if err := unix.PtraceAttach(pid); err != nil {
				return err
			}
			if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
				return err
			}
			return unix.PtraceDetach(pid)
		}),
		"vmread": onPID(vmRead),
		"getfd":  onPID(getFD),
		"setns":  onPID(setns),
		"kill":   onPID(kill),
		"limit":  onPID(func(pid int) error { return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil) }),
		"setuid": plain(func() error { return syscall.Setresuid(0, 0, 0) }),
		"euid0":  plain(euid0),
		"caps":   plain(raiseCaps),
		"ambient": plain(func() error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_ADMIN, 0, 0)
		}),
		"clone":  clone,
		"mount":  mount,
		"umount": func(args []string) error { return said(unix.Unmount(args[0], unix.MNT_DETACH)) },
		"remount": func(args []string) error {
			return said(unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, ""))
		},
		"chroot":   func(args []string) error { return said(unix.Chroot(args[0])) },
		"mknod":    func([]string) error { return said(unix.Mknod("node", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1)))) },
		"handle":   plain(byHandle),
		"writable": writable,
		"bpf":      plain(bpf),
		"syscall":  anySyscall,
	}
}

// said prints that a privilege was had.
func said(err error) error {
	if err == nil {
		fmt.Println("ok")
	}
	return err
}

func plain(f func() error) func([]string) error {
	return func([]string) error { return said(f()) }
}

func onPID(f func(pid int) error) func([]string) error {
	return func(args []string) error { return said(f(whichPID(args[0]))) }
}

// victimMain starts a process that stands for PID 1 where there is none of ours, and prints
// its number.
func victimMain(args []string) error {
	if len(args) == 1 {
		time.Sleep(jobTime)
		return nil
	}
	cmd := exec.Command("/proc/self/exe", "victim", "stay")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	return nil
}

func vmRead(pid int) error {
	b := make([]byte, 8)
	_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	return err
}

func getFD(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 0, 0)
	return err
}

func setns(pid int) error {
	runtime.LockOSThread()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

// kill ends a process, and has done so when it is gone.
func kill(pid int) error {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGSEGV, unix.SIGABRT, unix.SIGSTOP, unix.SIGKILL} {
		if err := unix.Kill(pid, sig); err != nil {
			return err
		}
	}
	for range 20 {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return nil
		}
		for i := range data {
			if data[i] == ')' && i+2 < len(data) && data[i+2] == 'Z' {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("it lives")
}

func euid0() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the uid is %d", os.Geteuid())
	}
	return raiseCaps()
}

// raiseCaps asks for every capability there is.
func raiseCaps() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := uint32(1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW)
	data := [2]unix.CapUserData{{Effective: all, Permitted: all, Inheritable: all}}
	return unix.Capset(&header, &data[0])
}

// clone FLAGS...: a process in new namespaces, with all capabilities over them.
func clone(args []string) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	for _, name := range args {
		cmd.SysProcAttr.Cloneflags |= map[string]uintptr{
			"user": unix.CLONE_NEWUSER, "net": unix.CLONE_NEWNET, "ns": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID,
		}[name]
	}
	return said(cmd.Run())
}

// mount TYPE: on a directory of our own.
func mount(args []string) error {
	if err := os.MkdirAll("mnt", 0o755); err != nil {
		return err
	}
	source, flags, kind := args[0], uintptr(0), args[0]
	if len(args) == 2 {
		source, flags, kind = args[1], unix.MS_BIND, ""
	}
	err := unix.Mount(source, "mnt", kind, flags, "")
	if err == nil {
		_ = unix.Unmount("mnt", unix.MNT_DETACH)
	}
	return said(err)
}

// byHandle opens the root by its number, as a file system may not check who asks.
func byHandle() error {
	h, id, err := unix.NameToHandleAt(unix.AT_FDCWD, "/tmp", 0)
	if err != nil {
		return lacking(err)
	}
	_ = id
	at, err := unix.Open("/tmp", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, err = unix.OpenByHandleAt(at, h, unix.O_RDONLY)
	return err
}

// writable PATH...: opens the first for writing, and writes nothing.
func writable(args []string) error {
	fd, err := unix.Open(args[0], unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return said(unix.Close(fd))
}

// bpf loads a program of two instructions: let everything through.
func bpf() error {
	code := [16]byte{0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95}
	license := []byte("GPL\x00")
	attrs := struct {
		kind, count   uint32
		code, license uint64
		rest          [96]byte
	}{kind: 8, count: 2, code: uint64(uintptr(unsafe.Pointer(&code[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, 5, uintptr(unsafe.Pointer(&attrs)), unsafe.Sizeof(attrs))
	runtime.KeepAlive(&code)
	runtime.KeepAlive(&license)
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	return errnoOf(errno)
}

// anySyscall NAME: calls that would make a mount without mount(2).
func anySyscall(args []string) error {
	name := append([]byte("tmpfs"), 0)
	number := map[string]uintptr{"fsopen": unix.SYS_FSOPEN}[args[0]]
	fd, _, errno := unix.Syscall(number, uintptr(unsafe.Pointer(&name[0])), 0, 0)
	if errno == 0 {
		_ = unix.Close(int(fd))
	}
	return said(errnoOf(errno))
}
