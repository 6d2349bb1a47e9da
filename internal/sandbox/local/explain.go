package local

import (
	"fmt"
	"syscall"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

// facts are what is known about a machine on which a step failed. They explain; the
// decision is always the attempt's.
type facts struct {
	Root      bool
	Container bool
	// Values of sysctls; empty where there is none.
	AppArmor   string // kernel.apparmor_restrict_unprivileged_userns
	MaxUserNS  string // user.max_user_namespaces
	UserNSOnly string // kernel.unprivileged_userns_clone, of Debian's older kernels
}

const dockerFlags = "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"

// explain says why a step fails here and what lifts it. It is pure.
func explain(s plan.Step, errno syscall.Errno, f facts) (why, hint string) {
	refused := errno == syscall.EPERM || errno == syscall.EACCES
	switch {
	case s == plan.StepClone && (errno == syscall.ENOSPC || errno == syscall.EUSERS || f.MaxUserNS == "0"):
		return fmt.Sprintf("no further user namespace may be made (user.max_user_namespaces is %s)", orUnknown(f.MaxUserNS)),
			"run 'sudo sysctl -w user.max_user_namespaces=15000', or use --provider=docker"
	case s == plan.StepClone && refused && f.UserNSOnly == "0" && !f.Root:
		return "the kernel forbids user namespaces to ordinary users (kernel.unprivileged_userns_clone is 0)",
			"run 'sudo sysctl -w kernel.unprivileged_userns_clone=1', or use --provider=docker"
	case refused && f.AppArmor == "1" && !f.Root:
		return "AppArmor takes the rights of user namespaces away (kernel.apparmor_restrict_unprivileged_userns is 1)",
			"run 'sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0', or use --provider=docker"
	case s == plan.StepClone && refused && f.Container:
		return "this container's seccomp profile refuses new namespaces",
			"start the container with " + dockerFlags
	case s == plan.StepClone && refused:
		return "the kernel or a security module refuses new user namespaces",
			"allow unprivileged user namespaces, run as root, or use --provider=docker"
	case s == plan.StepClone && (errno == syscall.ENOSYS || errno == syscall.EINVAL):
		return "this kernel has no user namespaces", "use --provider=docker"
	case s == plan.StepSysctl && errno == syscall.EROFS:
		return "this container's /proc/sys is read-only",
			"start the container with " + dockerFlags
	case s == plan.StepProc && refused && f.Container:
		return "this container masks parts of /proc, and the kernel then refuses a new one",
			"start the container with " + dockerFlags
	case s == plan.StepProc && refused:
		return "something is mounted over parts of /proc, and the kernel then refuses a new one",
			"unmount what 'findmnt -R /proc' lists, or use --provider=docker"
	case s == plan.StepProc && errno == syscall.EINVAL, s == plan.StepSeal && errno == syscall.ENOSYS:
		return "this kernel is older than 5.12", "use --provider=docker"
	case refused:
		return fmt.Sprintf("the kernel refuses a step of the set-up (%s: %v)", s, errno),
			"use --provider=docker"
	}
	return "", ""
}

func orUnknown(value string) string {
	if value == "" {
		return "unknown"
	}
	return value
}
