package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// readyBound is how long an agent may take until its session is there. Real agents
// need 8 to 12 seconds on a good day.
const readyBound = 2 * time.Minute

// AgentIn asks for the agent's session.
type AgentIn struct {
	Spec task.Spec        `json:"spec"`
	MCP  []wire.MCPServer `json:"mcp,omitempty"`
}

// AgentOut is empty: the session is there.
type AgentOut struct{}

// SessionBegun reports whether an earlier host began the session already; it may not be
// there yet.
func (s *Steps) SessionBegun(ctx context.Context, c *agent.Client) (bool, error) {
	h, err := c.Health(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the agent server how it is: %w", err)
	}
	return h.HasSession || h.Phase != wire.PhaseWaiting, nil
}

// AwaitAgent waits until a session that was begun is there.
func (s *Steps) AwaitAgent(ctx context.Context, c *agent.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	return c.Ready(ctx)
}

// StartAgent begins the session and waits until it is there: a server that answers
// is not yet a session.
func (s *Steps) StartAgent(ctx context.Context, c *agent.Client, in AgentIn) (AgentOut, error) {
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	t := in.Spec
	values, err := s.Secrets.All(ctx, t.Run)
	if err != nil {
		return AgentOut{}, err
	}
	values = shareable(values, t.Secrets)
	command := slices.Clone(t.Agent.Command)
	for i, word := range command {
		command[i] = secret.Unfold(word, values)
	}
	err = c.Start(ctx, wire.Start{
		Agent: t.Agent.Name, Command: command, Dir: t.WorkDir(),
		Prompt: prompt(t, values), Schema: t.Schema, Mode: string(t.Mode),
		Model: t.Agent.Model, Effort: t.Agent.Effort, PermissionMode: t.Agent.PermissionMode,
		MCP: in.MCP, TurnTime: t.TurnTime.Std(), PreferMounted: t.Image == "",
	})
	if err != nil {
		return AgentOut{}, fmt.Errorf("start agent %s: %w", t.Agent.Name, err)
	}
	if err := c.Ready(ctx); err != nil {
		return AgentOut{}, fmt.Errorf("start agent %s: %w", t.Agent.Name, err)
	}
	return AgentOut{}, nil
}

// toPublish is what an agent that is to open a pull request is told beside its task.
const toPublish = `

If you change files of the repository, publish them when the work is done: stage the changes
with git add, call the tool git_signed_commit with the name of a new branch, then the tool
create_pull_request. git commit and git push are refused here, because commits must be signed.`

// prompt is what the agent is asked to do.
func prompt(t task.Spec, values map[string]secret.String) string {
	text := secret.Unfold(t.Description, values)
	if t.CreatePR && t.Agent.Drives() {
		text += toPublish
	}
	return text
}

// shareable are the values that the texts of a run may name in its sandbox: the user's
// own. The keys of models, of the link and of the host's servers are not among them, and
// are shown as hidden.
func shareable(values map[string]secret.String, names []string) map[string]secret.String {
	shared := make(map[string]secret.String, len(values))
	for name, value := range values {
		if !slices.Contains(names, name) {
			value = secret.New(secret.Hidden)
		}
		shared[name] = value
	}
	return shared
}
