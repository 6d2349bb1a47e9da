package acp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/Insights/insightscli/internal/task"
)

// Bounds of a request for leave: what people are shown.
const (
	maxOptions = 32
	maxInput   = 256 << 10
	maxTitle   = 4 << 10
)

// handler answers what the agent asks for.
func (d *driver) handler(a *agent) sdk.MethodHandler {
	return func(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
		defer func() {
			select {
			case <-a.slots: // taken by the reader
			default: // a notification, which has none
			}
		}()
		if method != sdk.ClientMethodSessionRequestPermission {
			return nil, sdk.NewMethodNotFound(method)
		}
		var request permissionRequest
		if err := json.Unmarshal(params, &request); err != nil {
			return nil, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
		}
		return answer(d.leave(ctx, request)), nil
	}
}

type permissionRequest struct {
	ToolCall task.PermissionTool     `json:"toolCall"`
	Options  []task.PermissionOption `json:"options"`
}

// answer is the protocol's answer: an option, or that nobody chose one.
func answer(option string) any {
	if option == "" {
		return map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}
	}
	return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": option}}
}

// leave asks for leave and returns the id of an option, or "" where nobody chose: the
// turn is cancelled, or over.
func (d *driver) leave(ctx context.Context, r permissionRequest) string {
	d.mu.Lock()
	t, full := d.turn, d.full
	d.mu.Unlock()
	if t == nil || len(r.Options) == 0 || len(r.Options) > maxOptions {
		return ""
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-t.cancelled:
			stop()
		case <-t.over:
			stop()
		case <-ctx.Done():
		}
	}()
	if len(r.ToolCall.Title) > maxTitle {
		r.ToolCall.Title = r.ToolCall.Title[:maxTitle]
	}
	if len(r.ToolCall.Input) > maxInput {
		r.ToolCall.Input = nil
	}
	option, err := d.host.Ask(ctx, task.Permission{
		RequestID: fmt.Sprintf("acp-%d", d.asks.Add(1)),
		ToolCall:  r.ToolCall, Options: r.Options, Default: d.byDefault(full, r.Options),
	})
	if err != nil {
		return ""
	}
	return option
}

// byDefault is the option when nobody answers: no. It is yes where a run with full
// access has an agent without such a mode, and nobody is there to say so each time.
func (d *driver) byDefault(full bool, options []task.PermissionOption) string {
	kinds := []string{task.RejectOnce, "reject_always"}
	if d.start.PermissionMode == "" && !full && !d.host.Attended {
		kinds = []string{task.AllowOnce, task.AllowAlways}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	return ""
}
