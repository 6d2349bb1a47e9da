package local

import (
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

func TestExplain(t *testing.T) {
	for name, tt := range map[string]struct {
		step      plan.Step
		errno     syscall.Errno
		facts     facts
		why, hint string // parts of them
	}{
		"no user namespaces allowed":      {plan.StepClone, syscall.ENOSPC, facts{MaxUserNS: "0"}, "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces"},
		"all of them used up":             {plan.StepClone, syscall.ENOSPC, facts{MaxUserNS: "9"}, "is 9", "sysctl"},
		"Debian's switch":                 {plan.StepClone, syscall.EPERM, facts{UserNSOnly: "0"}, "kernel.unprivileged_userns_clone", "=1"},
		"a container":                     {plan.StepClone, syscall.EPERM, facts{Container: true, Root: true}, "seccomp", "seccomp=unconfined"},
		"a security module":               {plan.StepClone, syscall.EPERM, facts{}, "security module", "--provider=docker"},
		"a kernel without":                {plan.StepClone, syscall.EINVAL, facts{}, "no user namespaces", "docker"},
		"AppArmor at the clone":           {plan.StepClone, syscall.EACCES, facts{AppArmor: "1"}, "apparmor_restrict_unprivileged_userns", "=0"},
		"AppArmor at a later step":        {plan.StepTmpfs, syscall.EACCES, facts{AppArmor: "1"}, "AppArmor", "apparmor_restrict_unprivileged_userns=0"},
		"AppArmor at the network":         {plan.StepNetwork, syscall.EPERM, facts{AppArmor: "1"}, "AppArmor", "=0"},
		"AppArmor does not restrict root": {plan.StepClone, syscall.EPERM, facts{AppArmor: "1", Root: true, Container: true}, "seccomp", "systempaths"},
		"read-only /proc/sys":             {plan.StepSysctl, syscall.EROFS, facts{Container: true}, "/proc/sys is read-only", "systempaths=unconfined"},
		"masked /proc in a container":     {plan.StepProc, syscall.EPERM, facts{Container: true}, "masks parts of /proc", "systempaths=unconfined"},
		"masked /proc":                    {plan.StepProc, syscall.EPERM, facts{}, "over parts of /proc", "findmnt"},
		"old kernel, proc":                {plan.StepProc, syscall.EINVAL, facts{}, "older than 5.12", "docker"},
		"old kernel, mount_setattr":       {plan.StepSeal, syscall.ENOSYS, facts{}, "older than 5.12", "docker"},
		"anything else refused":           {plan.StepPivot, syscall.EPERM, facts{}, "pivot_root: operation not permitted", "docker"},
		"not a refusal":                   {plan.StepMount, syscall.ENOENT, facts{}, "", ""},
		"full disk":                       {plan.StepFiles, syscall.ENOSPC, facts{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, hint := explain(tt.step, tt.errno, tt.facts)
			if !strings.Contains(why, tt.why) || !strings.Contains(hint, tt.hint) || tt.why == "" && why != "" {
				t.Errorf("got %q, %q", why, hint)
			}
			if strings.ContainsAny(why+hint, "\n") {
				t.Error("more than one line")
			}
		})
	}
}
