package owner

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// bootID names the running kernel: the time at which it was booted.
func bootID() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(tv.Sec, 10)
}

// machineID names the machine.
func machineID() string {
	id, err := unix.Sysctl("kern.uuid")
	if err != nil {
		return ""
	}
	return id
}

// processStart returns when this process began.
func processStart() time.Time {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", os.Getpid())
	if err != nil {
		return time.Now()
	}
	return time.Unix(p.Proc.P_starttime.Unix())
}
