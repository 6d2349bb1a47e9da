package cli

import (
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/task"
)

const agentExec = task.AgentExec

// originProducts are the products that create tasks.
func originProducts() []string {
	return []string{
		"user_created", "automation", "error_tracking", "eval_clusters", "experiments", "hogdesk", "image_builder",
		"insights_ai", "loop", "mcp_analytics", "onboarding", "review_hog", "session_summaries", "signal_report",
		"signals_scout", "slack", "support_queue", "support_reply",
	}
}

// checkAgent accepts the agents that there are.
func checkAgent(name string) error {
	acp, ok := strings.CutPrefix(name, task.AgentACP)
	if name == agentExec || name == task.AgentClaude || name == task.AgentCodex || ok && strings.TrimSpace(acp) != "" {
		return nil
	}
	return errs.New("cli.Parse", errs.Usage, "use claude, codex, acp:COMMAND, or run a command: insightscli run -- COMMAND",
		"unknown agent %q", name)
}

// permissionModes are those of an agent, in its own words; nil: whatever it knows.
func permissionModes(agent string) []string {
	switch agent {
	case task.AgentClaude:
		return []string{"default", "acceptEdits", "plan", "bypassPermissions", "auto"}
	case task.AgentCodex:
		return []string{"plan", "auto", "read-only", "full-access"}
	}
	return nil
}

// checkPermissionMode accepts the modes of the agent.
func checkPermissionMode(agent, mode string) error {
	modes := permissionModes(agent)
	if mode == "" || modes == nil || slices.Contains(modes, mode) {
		return nil
	}
	return errs.New("cli.Parse", errs.Usage, "use one of "+strings.Join(modes, ", "),
		"agent %s has no permission mode %q", agent, mode)
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

// networkNone is a word for the level custom with nothing allowed.
const networkNone = "none"

// checkNetwork reads a network level.
func checkNetwork(level string) (task.Network, error) {
	switch n := task.Network(level); n {
	case task.NetworkFull, task.NetworkLink, task.NetworkTrusted, task.NetworkCustom:
		return n, nil
	}
	if level == networkNone {
		return task.NetworkCustom, nil
	}
	return "", errs.New("cli.Parse", errs.Usage, "use full, trusted, custom, link or none", "unknown network level %q", level)
}
