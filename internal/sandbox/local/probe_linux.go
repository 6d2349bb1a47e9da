package local

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// Probe reports whether sandboxes can be made here, by making the part of one that
// a machine can refuse, up to a mounted proc: a few milliseconds. The error is of
// kind Unavailable and says why not and what lifts it. agentServer is as in
// sandbox.Spec.
func (p *Provider) Probe(ctx context.Context, agentServer string) error {
	const op = "local.Probe"
	spec := sandbox.Spec{AgentUID: os.Geteuid(), AgentGID: os.Getegid()}
	if spec.AgentUID == 0 {
		spec.AgentUID, spec.AgentGID = 1, 1
	}
	id, err := identityOf(spec)
	if err != nil {
		return refuseIdentity(op, err)
	}
	if err := probe(ctx, agentServer, id); err != nil {
		if ctxErr := ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		return unavailable(op, err)
	}
	return nil
}

func probe(ctx context.Context, server string, id identity) error {
	c, err := startInit(server, "", id, nil)
	if err != nil {
		return err
	}
	defer c.close()
	err = c.run(ctx, plan.Job{Plan: plan.Plan{Probe: true, OneUID: id.oneUID}})
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
	defer cancel()
	err = errors.Join(err, c.pid1.kill(), c.pid1.wait(end))
	c.pid1.reap()
	return errors.Join(err, c.pid1.fd.Close())
}

// unavailable turns a failed step into the refusal of DESIGN: why, and what lifts
// it. Failures that are nobody's policy stay what they are.
func unavailable(op string, err error) error {
	var failed *stepError
	var errno syscall.Errno
	if errors.As(err, &failed) && errors.As(err, &errno) && errno != 0 {
		if why, hint := explain(failed.step, errno, lookAround()); why != "" {
			return errs.New(op, errs.Unavailable, hint, "%s: %s", cannot, why)
		}
	}
	return errs.New(op, errs.Internal, "", "%w", err)
}

// cannot begins every refusal.
const cannot = "local sandboxes cannot be made here"

// lookAround collects what explains a refusal.
func lookAround() facts {
	return facts{
		Root:       os.Geteuid() == 0,
		Container:  inContainer(),
		AppArmor:   sysctl("kernel/apparmor_restrict_unprivileged_userns"),
		MaxUserNS:  sysctl("user/max_user_namespaces"),
		UserNSOnly: sysctl("kernel/unprivileged_userns_clone"),
	}
}

func sysctl(name string) string {
	data, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// inContainer looks for the marks that engines leave, and for a seccomp filter: on
// a plain machine a user's processes have none.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && strings.Contains(string(status), "\nSeccomp:\t2")
}
