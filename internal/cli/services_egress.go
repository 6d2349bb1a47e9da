package cli

import (
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/task"
)

// captured reports whether the sandbox of a run has no network but the link: everywhere
// but on Docker's bridge.
func captured(spec task.Spec) bool {
	return spec.Provider != config.ProviderDocker || spec.Network != task.NetworkFull
}

// newGate makes the host's end of the network of a run's sandbox. What it returns closes it
// again.
func (v *services) newGate(spec task.Spec, r steps.Reporter) (gate *egress.Gate, closeIt func(), err error) {
	allow := spec.Allow
	if spec.Network == task.NetworkFull || spec.Network == task.NetworkLink {
		allow = []string{rule.All}
	}
	set, err := rule.Compile(allow)
	if err != nil {
		return nil, nil, errs.New("cli.services", errs.Internal, "start the run again", "the rules of the network: %w", err)
	}
	path := v.store.EgressLogPath(spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, errs.New("cli.services", errs.Internal, "", "record connections: %w", err)
	}
	audit, err := egress.OpenAudit(path, 0)
	if err != nil {
		return nil, nil, err
	}
	m := v.config.Machine
	gate = egress.New(egress.Config{
		Set: set, Run: spec.Run,
		Proxy:    egress.ProxyFunc(m.HTTPProxy.Reveal(), m.HTTPSProxy.Reveal(), m.NoProxy),
		OnDenied: func(d task.Denied) { r.Tell(task.KindDenied, d) },
		Audit:    audit.Add,
		Permit:   v.permitAddr,
	})
	return gate, func() {
		gate.Close()
		if err := audit.Close(); err != nil {
			r.Tell(task.KindNotice, task.Notice{Level: "warn", Message: "the record of connections is not complete: " + err.Error()})
		}
	}, nil
}
