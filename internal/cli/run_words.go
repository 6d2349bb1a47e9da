package cli

import (
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/task"
)

const agentExec = "exec"

// originProducts are the products that create tasks.
func originProducts() []string {
	return []string{
		"user_created", "automation", "error_tracking", "eval_clusters", "experiments", "hogdesk", "image_builder",
		"insights_ai", "loop", "mcp_analytics", "onboarding", "review_hog", "session_summaries", "signal_report",
		"signals_scout", "slack", "support_queue", "support_reply",
	}
}

// checkAgent accepts the agents of this build.
func checkAgent(name string) error {
	switch {
	case name == agentExec:
		return nil
	case knownAgent(name):
		return notInBuild("run a command instead: insightscli run -- COMMAND",
			"agent %s is not in this build, which has: exec", name)
	}
	return errs.New("cli.Parse", errs.Usage, "run a command: insightscli run -- COMMAND", "unknown agent %q; this build has: exec", name)
}

// knownAgent reports whether there is such an agent, in this build or not.
func knownAgent(name string) bool {
	acp, ok := strings.CutPrefix(name, "acp:")
	return name == agentExec || name == "claude" || name == "codex" || ok && acp != ""
}

// checkTemplate accepts the templates of this build.
func checkTemplate(name string) error {
	t, err := image.Parse(name)
	switch {
	case err != nil:
		return err
	case t.Dockerfile() == "":
		return notInBuild("use --template=default_base", "template %s is not in this build", name)
	}
	return nil
}

// checkNetwork accepts the network levels of this build.
func checkNetwork(level string) (task.Network, error) {
	switch n := task.Network(level); n {
	case task.NetworkFull, task.NetworkLink:
		return n, nil
	case task.NetworkTrusted, task.NetworkCustom:
		return "", notInBuild("use --network=link for no network at all, or --network=full", "network level %s is not in this build", level)
	}
	return "", errs.New("cli.Parse", errs.Usage, "use full or link", "unknown network level %q", level)
}
