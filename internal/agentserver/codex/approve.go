package codex

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Insights/insightscli/internal/task"
)

// request has the fields of all requests for leave.
type request struct {
	Thread  string `json:"threadId"`
	ItemID  string `json:"itemId"`
	Command string `json:"command"`
	Dir     string `json:"cwd"`
	Reason  string `json:"reason"`
	Kind    string `json:"kind"` // command, writeStdin

	Server  string `json:"serverName"`
	Message string `json:"message"`
	Meta    struct {
		Kind   string          `json:"codex_approval_kind"`
		Tool   string          `json:"tool_name"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"`

	Permissions json.RawMessage `json:"permissions"`
}

// asked implements peer. A request that it does not know is answered with an error.
func (d *driver) asked(ctx context.Context, method string, params json.RawMessage) (any, error) {
	var r request
	if err := json.Unmarshal(params, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	switch method {
	case "item/commandExecution/requestApproval":
		return d.askCommand(ctx, r), nil
	case "item/fileChange/requestApproval":
		tool := d.running(r.ItemID)
		tool.Kind = "edit"
		return decision(d.leave(ctx, tool)), nil
	case "mcpServer/elicitation/request":
		return d.askServer(ctx, r), nil
	case "item/permissions/requestApproval":
		return d.askPermissions(ctx, r), nil
	case "item/tool/requestUserInput":
		d.tell(ctx, "info", "codex asked a question, which nobody can answer in this session")
		return map[string]any{"answers": map[string]any{}}, nil
	}
	return nil, fmt.Errorf("%s is not known here", method)
}

// running is the tool call that is going on under that id, as it is asked about.
func (d *driver) running(id string) task.PermissionTool {
	d.mu.Lock()
	defer d.mu.Unlock()
	call := d.tools[id].call
	return task.PermissionTool{ID: id, Title: call.Title, Kind: call.Kind, Input: call.RawInput}
}

func (d *driver) askCommand(ctx context.Context, r request) any {
	d.mu.Lock()
	m := d.settings.mode
	d.mu.Unlock()
	if r.Kind != "writeStdin" && (m == modeReadOnly || m == modePlan) && reads(r.Command) {
		return decision(task.AllowOnce)
	}
	tool := d.running(r.ItemID)
	tool.Kind = "execute"
	if r.Command != "" {
		tool.Title = title(script(r.Command))
		tool.Input = raw(map[string]string{"command": clip(script(r.Command), maxText), "cwd": r.Dir, "reason": r.Reason})
	}
	return decision(d.leave(ctx, tool))
}

// askServer is for the tools of MCP servers. Other questions of a server are for people
// who fill in forms.
func (d *driver) askServer(ctx context.Context, r request) any {
	if r.Meta.Kind != "mcp_tool_call" {
		d.notice(ctx, "the MCP server "+r.Server+" asked a question, which nobody can answer in this session: "+r.Message)
		return map[string]any{"action": "decline"}
	}
	tool := task.PermissionTool{Title: title("mcp__" + r.Server + "__" + r.Meta.Tool), Kind: "other", Input: bounded(r.Meta.Params)}
	switch d.leave(ctx, tool) {
	case task.AllowOnce:
		return map[string]any{"action": "accept", "content": map[string]any{}}
	case task.AllowAlways:
		return map[string]any{"action": "accept", "content": map[string]any{}, "_meta": map[string]string{"persist": "session"}}
	}
	return map[string]any{"action": "decline"}
}

func (d *driver) askPermissions(ctx context.Context, r request) any {
	text := "more permissions"
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	tool := task.PermissionTool{ID: r.ItemID, Title: title(text), Kind: "other", Input: bounded(r.Permissions)}
	switch d.leave(ctx, tool) {
	case task.AllowOnce:
		return map[string]any{"permissions": r.Permissions, "scope": "turn"}
	case task.AllowAlways:
		return map[string]any{"permissions": r.Permissions, "scope": "session"}
	}
	return map[string]any{"permissions": map[string]any{}, "scope": "turn"}
}

// leave asks people, and is the id of their option. Whatever goes wrong is a no. With
// full access nobody is asked.
func (d *driver) leave(ctx context.Context, tool task.PermissionTool) string {
	d.mu.Lock()
	d.asks++
	id, m := fmt.Sprintf("codex-%d", d.asks), d.settings.mode
	d.mu.Unlock()
	if m == modeFull {
		return task.AllowOnce
	}
	option, err := d.host.Ask(ctx, task.Permission{
		RequestID: id, ToolCall: tool, Default: task.RejectOnce,
		Options: []task.PermissionOption{
			{ID: task.AllowOnce, Name: "Allow", Kind: task.AllowOnce},
			{ID: task.AllowAlways, Name: "Allow for this session", Kind: task.AllowAlways},
			{ID: task.RejectOnce, Name: "Reject", Kind: task.RejectOnce},
		},
	})
	if err != nil {
		d.put(err)
		return task.RejectOnce
	}
	return option
}

// decision is Codex's word for the option. After a no it goes on with the turn.
func decision(option string) any {
	word := "decline"
	switch option {
	case task.AllowOnce:
		word = "accept"
	case task.AllowAlways:
		word = "acceptForSession"
	}
	return map[string]string{"decision": word}
}
