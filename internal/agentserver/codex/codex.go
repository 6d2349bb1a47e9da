// Package codex is the driver of agent "codex": OpenAI's Codex CLI, which it runs as
// `codex app-server` and talks to in JSON-RPC over its standard streams.
//
// # Leave
//
// Codex would confine its commands by namespaces of its own, which a container does not
// let it make. So its sandbox is off in every permission mode (danger-full-access): the
// sandbox is the one around the agent. The modes differ in what Codex asks leave for:
//
//   - full-access: for nothing. Codex itself then refuses a few commands, rm -f among them.
//   - auto: for what it takes for dangerous, and for tools of MCP servers that are not
//     marked as reading only.
//   - read-only: for everything but commands that certainly only read.
//   - plan: as read-only, and in Codex's plan mode, in which it is told to change nothing.
//
// # Secrets
//
// No secret is on a command line: Codex takes the tokens from its environment, by name.
// Its commands do not get them; see the policy in [arguments].
package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Name is the agent's name in a wire.Start, and that of its program.
const Name = "codex"

const (
	grace        = 3 * time.Second  // for the program to end, and after each signal
	startTime    = 60 * time.Second // for the program to be ready
	patience     = 5 * time.Second  // for the answer to a request that takes no work
	requiredTime = 45 * time.Second // for an MCP server that is required
)

// New makes the driver; it is an [agentserver.NewDriver].
func New(host *agentserver.Host) agentserver.Driver {
	return &driver{host: host, grace: grace, patience: patience, servers: newServers()}
}

var (
	_ agentserver.NewDriver = New
	_ agentserver.Steerer   = (*driver)(nil)
	_ agentserver.Optioner  = (*driver)(nil)
)

type driver struct {
	host     *agentserver.Host
	grace    time.Duration
	patience time.Duration
	start    wire.Start
	servers  *servers

	mu       sync.Mutex // guards the rest
	settings settings   // of the next turn
	conn     *conn      // nil: not running
	thread   string
	kept     bool // the thread is in Codex's own records
	planned  bool // the thread has been told of plan mode
	turn     *turn
	early    bool // cancelled before the first turn
	closed   bool
	asks     int
	warned   map[string]bool
	tools    map[string]tool // that are going on, by the ids of their items
	thinking string          // the item whose thoughts came in pieces
}

// settings are what may change from turn to turn.
type settings struct {
	model, effort string // empty: Codex's own choice
	mode          mode
	chosen        string // the model that Codex chose
}

// Start implements agentserver.Driver. ctx is that of the session: the program lives
// with it.
func (d *driver) Start(ctx context.Context, start wire.Start) error {
	m, err := parseMode(start.PermissionMode)
	if err != nil {
		return err
	}
	if start.Dir == "" {
		start.Dir = d.host.Dir
	}
	d.start = start
	d.settings = settings{model: start.Model, effort: start.Effort, mode: m}
	for _, s := range start.MCP {
		if s.Required {
			d.servers.require(s.Name)
		}
	}
	_, err = d.connect(ctx)
	return err
}

// Prompt implements agentserver.Driver.
func (d *driver) Prompt(ctx context.Context, text string, schema json.RawMessage) (agentserver.Turn, error) {
	t := newTurn(schema)
	d.mu.Lock()
	if d.early || d.closed {
		t.cancel()
	}
	d.early = false
	d.turn = t
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.turn = nil
		d.mu.Unlock()
		close(t.over)
	}()
	outcome := d.run(ctx, t, text)
	if ctx.Err() != nil {
		return agentserver.Turn{}, ctx.Err()
	}
	return agentserver.Turn{Outcome: outcome, Structured: t.structured()}, nil
}

// run does the turn and says how it ended.
func (d *driver) run(ctx context.Context, t *turn, text string) wire.Outcome {
	before, stop := t.whileNotCancelled(ctx)
	defer stop()
	c, err := d.connect(before)
	if err == nil {
		err = d.servers.wait(before)
	}
	if err == nil && !t.isCancelled() {
		err = d.begin(ctx, c, t, text)
	}
	switch {
	case t.isCancelled() && t.id() == "":
		return wire.Outcome{StopReason: agentserver.StopCancelled}
	case err != nil:
		return failed(err)
	}
	select {
	case <-t.done:
	case <-c.dead:
		d.closeTools(ctx, t)
		if t.isCancelled() {
			return wire.Outcome{StopReason: agentserver.StopCancelled}
		}
		d.host.Log.Warn("codex: ended within a turn", "err", c.lost())
		return failed(c.lost())
	case <-ctx.Done():
		return wire.Outcome{}
	}
	outcome := t.outcome()
	if outcome.StopReason == agentserver.StopCancelled || t.denied() != "" {
		d.sweep(ctx, c)
	}
	if outcome.StopReason != agentserver.StopEndTurn {
		d.closeTools(ctx, t)
	}
	return outcome
}

// begin asks for the turn.
func (d *driver) begin(ctx context.Context, c *conn, t *turn, text string) error {
	params, planned := d.turnParams(t, text)
	err := c.callFirst(ctx, "turn/start", params, nil, func(result json.RawMessage) {
		var reply struct{ Turn turnResult }
		_ = json.Unmarshal(result, &reply) // the notification tells the id too
		t.begun(reply.Turn.ID)
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.kept, d.planned = true, planned
	d.mu.Unlock()
	return nil
}

// turnParams are those of turn/start. Everything that may have changed is told with
// every turn.
func (d *driver) turnParams(t *turn, text string) (params map[string]any, planned bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.settings
	params = map[string]any{
		"threadId": d.thread, "approvalPolicy": s.mode.policy(),
		"sandboxPolicy": map[string]string{"type": "dangerFullAccess"},
	}
	if s.model != "" {
		params["model"] = s.model
	}
	if s.effort != "" {
		params["effort"] = s.effort
	}
	if planned = s.mode == modePlan; planned || d.planned {
		params["collaborationMode"] = collaboration(s)
	}
	if schema, ok := strictSchema(t.schema); ok {
		params["outputSchema"] = schema
	} else if len(t.schema) > 0 {
		text += schemaWords + string(t.schema)
	}
	params["input"] = words(text)
	return params, planned
}

// words is text as Codex takes it.
func words(text string) []map[string]string {
	return []map[string]string{{"type": "text", "text": text}}
}

// sweep ends the commands that an interrupted turn has left running.
func (d *driver) sweep(ctx context.Context, c *conn) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	d.mu.Lock()
	thread := d.thread
	d.mu.Unlock()
	if err := c.call(ctx, "thread/backgroundTerminals/clean", map[string]string{"threadId": thread}, nil); err != nil {
		d.host.Log.Warn("codex: commands of an interrupted turn may still be running", "err", err)
	}
}

// Cancel implements agentserver.Driver: it asks Codex to interrupt the turn, and ends
// the program if the turn then goes on. The next turn starts it again.
func (d *driver) Cancel(ctx context.Context) {
	d.mu.Lock()
	t, c, thread := d.turn, d.conn, d.thread
	d.early = t == nil && !d.kept
	d.mu.Unlock()
	if t == nil {
		return
	}
	t.cancel()
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	select {
	case <-t.started:
	case <-t.over:
		return
	case <-ctx.Done():
		d.end(c)
		return
	}
	d.interrupt(ctx, c, thread, t.id())
	select {
	case <-t.done:
	case <-t.over:
	case <-ctx.Done():
		d.end(c)
	}
}

// Steer implements agentserver.Steerer.
func (d *driver) Steer(ctx context.Context, text string) string {
	d.mu.Lock()
	t, c, thread := d.turn, d.conn, d.thread
	d.mu.Unlock()
	if t == nil || t.id() == "" || t.isCancelled() || c == nil {
		return "no turn is going on that takes words"
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	params := map[string]any{"threadId": thread, "expectedTurnId": t.id(), "input": words(text)}
	if err := c.call(ctx, "turn/steer", params, nil); err != nil {
		return err.Error()
	}
	return ""
}

// SetOption implements agentserver.Optioner. What is set holds from the next turn on.
func (d *driver) SetOption(_ context.Context, o wire.ConfigOption) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch o.ConfigID {
	case "model":
		if o.Value == "" {
			return errors.New("model is empty")
		}
		d.settings.model = o.Value
	case "effort", "reasoning_effort", "thought_level":
		d.settings.effort = o.Value
	case "mode", "permission_mode":
		m, err := parseMode(o.Value)
		if err != nil {
			return err
		}
		d.settings.mode = m
	default:
		return fmt.Errorf("codex has no option %q; it has model, effort and mode", o.ConfigID)
	}
	return nil
}

// Close implements agentserver.Driver.
func (d *driver) Close(ctx context.Context) {
	d.mu.Lock()
	d.closed = true
	t, c := d.turn, d.conn
	d.mu.Unlock()
	if t != nil {
		t.cancel()
	}
	d.end(c)
	if t == nil {
		return
	}
	select {
	case <-t.over:
	case <-ctx.Done():
	}
}

// end ends the program.
func (d *driver) end(c *conn) {
	if c != nil {
		c.close(d.grace)
	}
}

// failed is the outcome of a turn that err ended.
func failed(err error) wire.Outcome {
	return wire.Outcome{StopReason: agentserver.StopError, Error: oneLine(err.Error())}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
