package link

import (
	"bytes"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inside reports whether the peer of conn is a process of this PID namespace that
// was started from within it. Processes of outer namespaces have the number 0
// here; those that an engine put inside (`docker exec`) have the parent 0.
func inside(conn net.Conn) bool {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return false
	}
	return cred.Pid != 0 && parent(int(cred.Pid)) != 0
}

// parent returns the parent of a process; of one that has ended meanwhile, -1.
func parent(pid int) int {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return -1
	}
	_, rest, _ := bytes.Cut(status, []byte("\nPPid:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(line))
	if err != nil {
		return -1
	}
	return n
}
