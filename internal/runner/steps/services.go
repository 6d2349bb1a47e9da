package steps

import (
	"context"
	"io"
	"time"

	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// Reporter is what the services of a run tell it. Its methods may be called at any time
// while the run lives, by several goroutines.
type Reporter interface {
	// Tell writes an event of the host's into the run's log, masked.
	Tell(kind task.Kind, payload any)
	// Ask asks people for leave and waits for the answer: the id of an option. In a run
	// that nobody watches it is p.Default, at once.
	Ask(ctx context.Context, p task.Permission) (string, error)
	// End ends the run in order once the turn that is going on is over. An empty
	// message is none. What was told once outlives this process.
	End(ctx context.Context, state task.State, message string) error
	// ReadFile copies a file of the sandbox to w, read as the agent. A relative path is
	// one of the agent's working directory.
	ReadFile(ctx context.Context, path string, w io.Writer) error
	// Workspace returns what there is to work with in the sandbox. An error says that
	// there is no sandbox, or no link to it, at the moment.
	Workspace() (Workspace, error)
}

// Workspace is the sandbox of a run for those who work in its repositories.
type Workspace struct {
	Repos []repo.Prepared
	Exec  repo.Execer // runs commands as the agent
}

// Followed is a run for those who follow it up.
type Followed interface {
	// Idle is since when the agent has had nothing to do. It is false while it works, or is
	// about to.
	Idle(ctx context.Context) (since time.Time, idle bool)
	// Pulls are the pull requests that were published, each as it was last.
	Pulls() []task.Published
	// Said are the messages to the run, in order, taken or not.
	Said(ctx context.Context) ([]task.Input, error)
	// Say records a message to the agent, unless one with its ID was recorded before.
	Say(ctx context.Context, in task.Input) error
	// Tell writes an event of the host's into the run's log, masked.
	Tell(kind task.Kind, payload any)
}

// Services are what a host offers to one sandbox over its link, by name, for as long as
// it carries out the run.
type Services struct {
	Handlers map[string]link.Handler
	// MCP connects to the MCP servers and returns those that the agent gets. An error
	// names a required server that is not there. It is nil for agents without MCP.
	MCP func(ctx context.Context) ([]wire.MCPServer, error)
	// Follow follows the run up: it may say more to an agent that has come to rest, and a
	// run that would end after its last turn goes on until Follow returns. It is called
	// again for a run that changes hands, and is nil where there is nothing to follow.
	Follow func(ctx context.Context, run Followed) error
	// Close ends what Handlers and MCP hold. It is called once, after the link.
	Close func()
}
