// Package claude is the driver of agent "claude": the program of Claude Code, which is
// spoken to over its standard streams in its own stream-json.
//
// One process serves as many turns as it can. It is ended and started again, with the
// same conversation, where something changes that a process has for its whole life: the
// JSON Schema of the reply, the model, the effort. The conversation itself is in the
// agent's home, below .claude.
//
// How a turn ended is told by is_error, terminal_reason and stop_reason of its result,
// never by its subtype, which is "success" for failures too. Whose result it is is told
// by the ids of the messages: the program may do turns of its own accord, and takes a
// message that comes during a turn into it, or does another for it.
package claude

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Name is the agent's name in a wire.Start.
const Name = "claude"

const (
	// grace is how long the program has to end after its input has, and after a signal.
	grace = 3 * time.Second
	// patience is how long an interrupted turn has to end by itself, and a control
	// request to be answered.
	patience = 5 * time.Second
	// maxLaunches bounds how often one prompt starts the program.
	maxLaunches = 4
)

// New makes the driver; it is an [agentserver.NewDriver].
func New(host *agentserver.Host) agentserver.Driver {
	return &driver{host: host, session: newID(), grace: grace, patience: patience}
}

var (
	_ agentserver.NewDriver = New
	_ agentserver.Steerer   = (*driver)(nil)
	_ agentserver.Optioner  = (*driver)(nil)
	_ agentserver.Refresher = (*driver)(nil)
)

type driver struct {
	host            *agentserver.Host
	grace, patience time.Duration

	mu       sync.Mutex // guards the rest
	start    wire.Start // its options change, see SetOption
	session  string     // the conversation's id
	kept     bool       // the conversation is in the agent's files: it can be resumed
	gone     bool       // the program has said that it is not
	refused  string     // the schema that the program does not take
	proc     *process   // nil before the first
	stale    bool       // proc has old options
	turn     *turn      // the one that is going on
	prompted bool
	early    bool // cancelled before the first prompt
	closing  bool
}

// Start implements agentserver.Driver. It launches the program and waits for nothing: the
// program says nothing before its first prompt.
func (d *driver) Start(ctx context.Context, start wire.Start) error {
	if err := checkEffort(start.Effort); err != nil {
		return err
	}
	if start.Dir == "" {
		start.Dir = d.host.Dir
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start = start
	_, err := d.launch(ctx, planSchema(start.Schema, "").flag)
	return err
}

// Prompt implements agentserver.Driver.
func (d *driver) Prompt(ctx context.Context, text string, schema json.RawMessage) (agentserver.Turn, error) {
	t := d.open()
	for range maxLaunches {
		plan := planSchema(schema, d.refusedSchema())
		p, err := d.ready(ctx, t, plan.flag)
		if err != nil {
			d.finish(t, failed(err.Error()))
			break
		}
		d.send(t, p, text+plan.words)
		select {
		case <-t.done:
		case <-p.ended:
			if d.again(ctx, t, p, plan.flag) {
				continue
			}
		case <-ctx.Done():
			d.finish(t, failed(context.Cause(ctx).Error()))
		}
		break
	}
	d.finish(t, failed("Claude Code does not start")) // unless it has ended before
	return t.result, nil
}

// open begins a turn.
func (d *driver) open() *turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := newTurn()
	t.cancelled = d.early
	d.turn, d.prompted, d.early = t, true, false
	return t
}

func (d *driver) refusedSchema() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// ready returns a process that has this schema and the options of now.
func (d *driver) ready(ctx context.Context, t *turn, schema string) (*process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.proc; p != nil && (p.schema != schema || d.stale || p.over() && p.began()) {
		d.mu.Unlock()
		p.stop(ctx, d.grace)
		d.mu.Lock()
		d.proc = nil
	}
	switch {
	case d.closing, t.cancelled:
		return nil, context.Canceled
	case d.proc != nil:
		return d.proc, nil
	}
	return d.launch(ctx, schema)
}

// send gives the prompt to the program.
func (d *driver) send(t *turn, p *process, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.waiting[t.id], t.proc, t.tracked = true, p, p.tracked
	p.say(userLine(text, t.id))
	if t.cancelled {
		p.say(interruptLine())
	}
}

// again tells what to do about a process that ended during a turn: whether to try once
// more, with another schema or another conversation. Else the turn has failed.
func (d *driver) again(ctx context.Context, t *turn, p *process, schema string) bool {
	d.mu.Lock()
	d.proc = nil
	cancelled := t.cancelled || d.closing
	d.mu.Unlock()
	if !cancelled && !p.began() && d.adapt(ctx, p, schema) {
		return true
	}
	words := p.lastWords()
	if !cancelled && !p.began() {
		if old := d.tooOld(ctx); old != "" {
			words = old
		}
	}
	d.finish(t, failed(words))
	return false
}

// finish ends a turn, once. One that was cancelled is cancelled, whatever came of it.
func (d *driver) finish(t *turn, result agentserver.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finishLocked(t, result)
}

func (d *driver) finishLocked(t *turn, result agentserver.Turn) {
	if t.over {
		return
	}
	if t.cancelled {
		result = agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopCancelled}}
	}
	result.Rejected = t.rejected
	t.over, t.result = true, result
	if d.turn == t {
		d.turn = nil
	}
	close(t.done)
}

// Cancel implements agentserver.Driver.
func (d *driver) Cancel(ctx context.Context) {
	d.mu.Lock()
	t := d.turn
	if t == nil {
		d.early = !d.prompted // between two turns there is nothing to cancel
		d.mu.Unlock()
		return
	}
	t.cancelled = true
	p := t.proc
	if p != nil {
		p.say(interruptLine())
	}
	d.mu.Unlock()
	if t.wait(ctx, d.patience) || p == nil {
		return
	}
	p.stop(ctx, d.grace)
	t.wait(ctx, d.grace)
}

// Close implements agentserver.Driver.
func (d *driver) Close(ctx context.Context) {
	d.mu.Lock()
	d.closing = true
	t, p := d.turn, d.proc
	if t != nil {
		t.cancelled = true
		if p != nil {
			p.say(interruptLine()) // so that it ends its tools
		}
	}
	d.mu.Unlock()
	if t != nil {
		t.wait(ctx, d.grace)
	}
	if p != nil {
		p.stop(ctx, d.grace)
	}
	if t != nil {
		t.wait(ctx, d.grace)
	}
}

// newID makes a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
