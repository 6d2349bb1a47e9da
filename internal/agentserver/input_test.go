//go:build unix

package agentserver_test

import (
	"context"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/task"
)

func callCancel(ctx context.Context, c *agent.Client) error {
	return c.Send(ctx, task.Input{Kind: task.InputInterrupt})
}
