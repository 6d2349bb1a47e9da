package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holderOf names the process that listens on a TCP port of this machine, or "" if that
// cannot be told.
func holderOf(port string) string {
	inode := listenerOf(port)
	if inode == "" {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%s, process %s", strings.TrimSpace(string(name)), pid)
	}
	return ""
}

// listenerOf is the inode of the socket that listens on a port.
func listenerOf(port string) string {
	n, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	const listen = "0A" // the state of a listening socket
	suffix := fmt.Sprintf(":%04X", n)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[1], suffix) && f[3] == listen {
				return f[9]
			}
		}
	}
	return ""
}
