package jail

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

// network brings up loopback, the only interface that a sandbox of `local` has, at
// every network level. sys is the host's /proc/sys, where the sysctls of the new
// network namespace are reached: it must run before the old root goes.
//
// What captures connections comes after it, in the last place that has CAP_NET_ADMIN.
func network(sys string) error {
	if err := loopbackUp(); err != nil {
		return step(plan.StepNetwork, err)
	}
	// Without the first one the agent, which has no capability, cannot serve 80.
	sysctls := [][2]string{
		{"/net/ipv4/ip_unprivileged_port_start", "0"},
		{"/net/ipv6/conf/all/disable_ipv6", "0"},
		{"/net/ipv6/conf/default/disable_ipv6", "0"},
		{"/net/ipv6/conf/lo/disable_ipv6", "0"},
	}
	for _, s := range sysctls {
		if err := setSysctl(sys+s[0], s[1]); err != nil {
			return step(plan.StepSysctl, err)
		}
	}
	return nil
}

// setSysctl writes a value. A kernel without the setting (no IPv6) is fine.
func setSysctl(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		_, err = unix.Write(fd, []byte(value))
		err = errors.Join(err, unix.Close(fd))
	}
	if err != nil {
		if old, readErr := os.ReadFile(path); readErr == nil && string(old) == value+"\n" {
			return nil // read-only, as in a container, and as it must be
		}
	}
	return pathError("write", path, err)
}

// shareInotify leaves the half of the user's inotify instances and watches to the host:
// the kernel counts those of the sandbox as the user's, and an agent that took all
// would stop the editors and file managers outside. The setting is that of this user
// namespace, in which all of the agent's lie. Where it cannot be written the agent
// goes without a bound of its own.
func shareInotify(sys string) error {
	for _, name := range []string{"instances", "watches"} {
		data, err := os.ReadFile(sys + "/fs/inotify/max_user_" + name)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && n > 1 {
			_ = setSysctl(sys+"/user/max_inotify_"+name, strconv.Itoa(n/2))
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	err = os.NewSyscallError("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr))
	if err != nil { // a kernel that has it up from the start may not have the call (gVisor)
		if lo, lookErr := net.InterfaceByName("lo"); lookErr == nil && lo.Flags&net.FlagUp != 0 {
			return nil
		}
	}
	return err
}
