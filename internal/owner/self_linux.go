package owner

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootID names the running kernel.
func bootID() string { return readID("/proc/sys/kernel/random/boot_id") }

// machineID names the installation; containers often have none.
func machineID() string { return readID("/etc/machine-id") }

func readID(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// ticksPerSecond is USER_HZ, which the kernel keeps at 100 for programs.
const ticksPerSecond = 100

// processStart returns when this process began: the start time that /proc has in
// ticks since boot, added to the time of boot.
func processStart() time.Time {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return time.Now()
	}
	// The second field is the name in parentheses and may hold anything; the start
	// time is the 22nd, the 20th behind it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var up unix.Timespec
	if len(fields) < 20 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Now()
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return time.Now()
	}
	age := time.Duration(up.Nano()) - time.Duration(ticks)*(time.Second/ticksPerSecond)
	return time.Now().Add(-age).Round(time.Second / ticksPerSecond)
}
