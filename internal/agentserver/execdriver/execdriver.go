// Package execdriver is the driver of agent "exec": one plain command, whose output
// is the run's output and whose end is the run's end. It takes no prompt and no
// message, and needs no model.
//
// The command leads its own session and process group. It is ended by SIGINT, then
// SIGTERM, then SIGKILL to the group. What it left running in the background when it
// ended by itself lives on until the session is closed.
package execdriver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Name is the agent's name in a wire.Start.
const Name = "exec"

// grace is how long the command has to end after each signal.
const grace = 5 * time.Second

// New makes the driver; it is an [agentserver.NewDriver].
func New(host *agentserver.Host) agentserver.Driver {
	return &driver{host: host, grace: grace, cancelled: make(chan struct{}), over: make(chan struct{})}
}

var _ agentserver.NewDriver = New

type driver struct {
	host  *agentserver.Host
	grace time.Duration
	start wire.Start

	mu        sync.Mutex // guards the rest
	child     *proc.Child
	cancelled chan struct{} // closed by the first Cancel or Close
	over      chan struct{} // closed when Prompt is about to return, or will not be called
	begun     bool
}

// Start implements agentserver.Driver.
func (d *driver) Start(_ context.Context, start wire.Start) error {
	if len(start.Command) == 0 || start.Command[0] == "" {
		return errors.New("agent exec needs a command")
	}
	if start.Dir == "" {
		start.Dir = d.host.Dir
	}
	d.start = start
	return nil
}

// Prompt implements agentserver.Driver: it runs the command to its end.
func (d *driver) Prompt(ctx context.Context, _ string, _ json.RawMessage) (agentserver.Turn, error) {
	d.mu.Lock()
	d.begun = true
	d.mu.Unlock()
	defer close(d.over)
	out, err := d.host.Output(ctx, wire.FrameStdout)
	if err != nil {
		return agentserver.Turn{}, err
	}
	errs, err := d.host.Output(ctx, wire.FrameStderr)
	if err != nil {
		out.Started()
		agentserver.Drain(out)
		return agentserver.Turn{}, err
	}
	child, err := d.launch(ctx, out, errs)
	if err == nil {
		child.Exit()
	}
	agentserver.Drain(out, errs)
	return agentserver.Turn{Outcome: d.outcome(child, err), Last: true}, nil
}

// launch starts the command unless it was cancelled before.
func (d *driver) launch(ctx context.Context, out, errs *agentserver.Output) (*proc.Child, error) {
	defer out.Started()
	defer errs.Started()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isCancelled() {
		return nil, context.Canceled
	}
	child, err := d.host.Starter.Start(ctx, proc.Spec{
		Argv: d.start.Command, Dir: d.start.Dir, Env: d.host.Env,
		Stdout: out.File, Stderr: errs.File,
	})
	d.child = child
	return child, err
}

// outcome says how the command ended. A cancelled one is cancelled, whatever it made
// of the signal; its code is told all the same.
func (d *driver) outcome(child *proc.Child, err error) wire.Outcome {
	o := wire.Outcome{StopReason: agentserver.StopEndTurn}
	if err != nil {
		code := proc.Code(err)
		o = wire.Outcome{StopReason: agentserver.StopError, ExitCode: &code, Error: err.Error()}
	} else if exit := child.Exit(); exit.Signal != 0 {
		o.Signal = proc.SignalName(exit.Signal)
		o.StopReason = agentserver.StopError
		o.Error = "the command was ended by " + o.Signal
	} else {
		o.ExitCode = &exit.Code
	}
	if d.isCancelled() {
		o.StopReason, o.Error = agentserver.StopCancelled, ""
		if child == nil {
			o.ExitCode = nil
		}
	}
	return o
}

func (d *driver) isCancelled() bool {
	select {
	case <-d.cancelled:
		return true
	default:
		return false
	}
}

// Cancel implements agentserver.Driver: the one turn is the command.
func (d *driver) Cancel(ctx context.Context) { d.Close(ctx) }

// Close implements agentserver.Driver. It ends the command, or what it left behind in
// its group, and returns when its last output is in the journal, or with ctx.
func (d *driver) Close(ctx context.Context) {
	d.mu.Lock()
	if !d.isOver() && !d.isCancelled() {
		close(d.cancelled)
	}
	child, begun := d.child, d.begun
	d.mu.Unlock()
	if child != nil {
		child.End(d.grace, syscall.SIGINT, syscall.SIGTERM)
	}
	if !begun {
		return
	}
	select {
	case <-d.over:
	case <-ctx.Done():
	}
}

func (d *driver) isOver() bool {
	select {
	case <-d.over:
		return true
	default:
		return false
	}
}
