package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// Health asks how the agent server is.
func (c *Client) Health(ctx context.Context) (wire.Health, error) {
	var h wire.Health
	err := c.rpc.call(ctx, wire.MethodHealth, struct{}{}, &h)
	return h, err
}

// Threads lists every thread of the sandbox, with what it may do.
func (c *Client) Threads(ctx context.Context) ([]wire.Thread, error) {
	var all []wire.Thread
	err := c.rpc.call(ctx, wire.MethodThreads, struct{}{}, &all)
	return all, err
}

// Inspect asks PID 1 what it sees of its sandbox.
func (c *Client) Inspect(ctx context.Context) (wire.Inspection, error) {
	var i wire.Inspection
	err := c.rpc.call(ctx, wire.MethodInspect, struct{}{}, &i)
	return i, err
}

// Start begins the session. A second call is an error, of this host or another.
func (c *Client) Start(ctx context.Context, start wire.Start) error {
	return c.rpc.call(ctx, wire.MethodStart, start, nil)
}

// GitHub gives programs inside the credential with which they read the run's
// repositories. The empty token takes it away.
func (c *Client) GitHub(ctx context.Context, g wire.GitHub) error {
	return c.rpc.call(ctx, wire.MethodGitHub, g, nil)
}

// StartError is wrapped by the error of a session that does not start.
type StartError struct {
	Phase   string   // in which it failed, or was when nobody waited any more
	LogTail []string // the end of PID 1's own log, each line safe to show
	Err     error
}

// Error implements error.
func (e *StartError) Error() string { return fmt.Sprintf("%v (phase %s)", e.Err, e.Phase) }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// Ready waits until the session is there. The error of a session that failed, or
// of a wait that ctx ended, wraps a [StartError].
func (c *Client) Ready(ctx context.Context) error {
	pause := 5 * time.Millisecond
	var last wire.Health
	for {
		h, err := c.Health(ctx)
		switch {
		case err != nil && ctx.Err() != nil && last.Phase != "":
			return notReady(ctx, last)
		case err != nil:
			return err
		case h.HasSession:
			return nil
		case h.Readiness == "failed":
			return failed(h)
		}
		last = h
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return notReady(ctx, last)
		case <-c.Lost():
			t.Stop()
			return lost("agent.Ready", nil)
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

func notReady(ctx context.Context, h wire.Health) error {
	kind := errs.KindOf(context.Cause(ctx))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = errs.Unavailable
	}
	return errs.New("agent.Ready", kind, "", "the agent's session did not start in time: %w", startError(h, context.Cause(ctx)))
}

func failed(h wire.Health) error {
	text := safe(h.Error)
	if text == "" {
		text = "no reason was given"
	}
	if h.FailureCode != "" {
		text = safe(h.FailureCode) + ": " + text
	}
	return errs.New("agent.Ready", errs.TaskFailed, "", "the agent's session failed: %w", startError(h, errors.New(text)))
}

// maxTail bounds the lines of a log that are shown.
const maxTail = 20

func startError(h wire.Health, err error) *StartError {
	e := &StartError{Phase: safe(h.Phase), Err: err}
	for _, line := range h.LogTail[max(0, len(h.LogTail)-maxTail):] {
		e.LogTail = append(e.LogTail, safe(line))
	}
	return e
}

// deliverTime is how long Send waits for the answer to a message. The answer comes
// when the turn has ended; a refusal comes at once. What is still unanswered then
// was delivered, and its turn is told by events.
const deliverTime = 500 * time.Millisecond

// Send says something to the session and returns when it has been delivered. Words
// for the turn that is going on become a message of their own when they come too
// late for it.
func (c *Client) Send(ctx context.Context, in task.Input) error {
	switch in.Kind {
	case task.InputMessage:
		_, err := c.message(ctx, wire.UserMessage{Content: in.Text, MessageID: in.ID, Schema: in.Schema})
		return err
	case task.InputSteer:
		result, err := c.message(ctx, wire.UserMessage{Content: in.Text, MessageID: in.ID, Steer: true})
		if err == nil && result.Steered != nil && !*result.Steered {
			_, err = c.message(ctx, wire.UserMessage{Content: in.Text, MessageID: in.ID})
		}
		return err
	case task.InputInterrupt:
		return c.rpc.call(ctx, wire.MethodCancel, struct{}{}, nil)
	case task.InputCancel:
		return c.rpc.call(ctx, wire.MethodClose, struct{}{}, nil)
	case task.InputPermission:
		return c.rpc.call(ctx, wire.MethodPermission,
			wire.PermissionResponse{RequestID: in.Name, OptionID: in.Value, CustomInput: in.Text}, nil)
	case task.InputOption:
		return c.rpc.call(ctx, wire.MethodSetOption, wire.ConfigOption{ConfigID: in.Name, Value: in.Value}, nil)
	}
	return errs.New("agent.Send", errs.Usage, "", "unknown kind of input %q", in.Kind)
}

// errDelivered ends the wait for the answer to a message.
var errDelivered = errors.New("delivered")

func (c *Client) message(ctx context.Context, m wire.UserMessage) (wire.TurnResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, deliverTime, errDelivered)
	defer cancel()
	var result wire.TurnResult
	err := c.rpc.call(ctx, wire.MethodUserMessage, m, &result)
	if errors.Is(err, errDelivered) {
		return wire.TurnResult{}, nil
	}
	return result, err
}

// Shutdown ends the agent and PID 1. It returns when PID 1 has said so or is gone.
func (c *Client) Shutdown(ctx context.Context) error {
	err := c.rpc.call(ctx, wire.MethodShutdown, struct{}{}, nil)
	if errors.Is(err, ErrLost) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("shut the agent server down: %w", err)
	}
	return nil
}
