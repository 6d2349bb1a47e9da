package agentserver

import (
	"context"
	"encoding/json"

	"github.com/Insights/insightscli/internal/link/wire"
)

// Driver runs one agent. Its methods are called in this order: Start once, Prompt
// for one turn after the other, Close once. Cancel and Close may be called while
// Prompt is going on, Cancel also before. What a driver can do beyond this it shows
// by one of the optional interfaces below.
type Driver interface {
	// Start makes the agent ready for a prompt. After an error there is no session
	// and no other method is called.
	Start(ctx context.Context, start wire.Start) error
	// Prompt does one turn and returns when it is over, however it ended. schema,
	// where there is one, is the JSON Schema of the reply. An error means that the
	// agent is lost.
	Prompt(ctx context.Context, text string, schema json.RawMessage) (Turn, error)
	// Cancel ends the turn that is going on, bounded by itself and by ctx. Prompt
	// then returns with the stop reason "cancelled".
	Cancel(ctx context.Context)
	// Close ends the agent and its processes, bounded by itself and by ctx.
	Close(ctx context.Context)
}

// Turn is how a turn ended.
type Turn struct {
	Outcome    wire.Outcome
	Last       bool            // the agent takes no further prompt: the session is over
	Structured json.RawMessage // the reply, where the agent gives it apart from its words
	Rejected   int             // replies that the agent itself found not to fit the schema
}

// NewDriver makes a driver for one session.
type NewDriver func(host *Host) Driver

// Steerer is implemented by drivers that take words into the turn that is going on.
type Steerer interface {
	// Steer returns why not, or "".
	Steer(ctx context.Context, text string) (declined string)
}

// Optioner is implemented by drivers whose sessions have options.
type Optioner interface {
	SetOption(ctx context.Context, option wire.ConfigOption) error
}

// Refresher is implemented by drivers that hold credentials or MCP servers.
type Refresher interface {
	Refresh(ctx context.Context, params json.RawMessage) error
}

// The stop reasons that every driver uses.
const (
	StopEndTurn   = "end_turn"
	StopError     = "error"
	StopCancelled = "cancelled"
	StopRefusal   = "refusal"
	StopMaxTokens = "max_tokens"
)
