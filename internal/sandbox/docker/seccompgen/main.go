//go:build linux

// Command seccompgen writes the seccomp profile of sandboxes: the default of the
// Docker engine, which takes a container's capabilities and the kernel into
// account, without the system calls of io_uring. An older engine's own default
// still allows those.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
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
		rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return strings.HasPrefix(name, "io_uring_") })
	}
	profile.Syscalls = slices.DeleteFunc(profile.Syscalls, func(rule *seccomp.Syscall) bool { return len(rule.Names) == 0 })
	data, err := json.Marshal(profile)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
