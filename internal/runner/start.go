package runner

import (
	"context"
	"errors"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/runner/steps"
)

// startAgent begins the session, unless an earlier host did, and waits until it is
// there.
func (x *execution) startAgent(ctx context.Context) error {
	begun, err := x.s().SessionBegun(ctx, x.client)
	if err != nil {
		return err
	}
	if begun {
		if err := x.s().AwaitAgent(ctx, x.client); err != nil {
			return x.explainStart(err)
		}
		_, err := x.mcpServers(ctx) // a required one that is gone ends this run, too
		return err
	}
	if err := x.installSkills(ctx); err != nil {
		return err
	}
	servers, err := x.mcpServers(ctx)
	if err != nil {
		return err
	}
	_, err = do(ctx, x, step{"agent", "Starting agent", "Started agent"},
		steps.AgentIn{Spec: x.spec, MCP: servers}, func(ctx context.Context, in steps.AgentIn) (steps.AgentOut, error) {
			return x.s().StartAgent(ctx, x.client, in)
		})
	return x.explainStart(err)
}

// startLines is how much of the agent server's log is shown when its session fails.
const startLines = 5

// explainStart shows the end of the agent server's own log beside the error of a session
// that did not start.
func (x *execution) explainStart(err error) error {
	var start *agent.StartError
	if !errors.As(err, &start) {
		return err
	}
	for _, line := range start.LogTail[max(0, len(start.LogTail)-startLines):] {
		x.story.notice("error", "agent server: "+line)
	}
	return err
}

// installSkills copies the skills to where agents look for them.
func (x *execution) installSkills(ctx context.Context) error {
	if x.spec.Skills == "" {
		return nil
	}
	_, err := do(ctx, x, step{"skills", "Installing skills", "Installed skills"},
		steps.SkillsIn{Hash: x.spec.Skills}, func(ctx context.Context, in steps.SkillsIn) (steps.SkillsOut, error) {
			return x.s().Skills(ctx, x.client, in)
		})
	return err
}
