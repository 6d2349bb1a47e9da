package claude

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Insights/insightscli/internal/link/wire"
)

// SetOption implements agentserver.Optioner: model and effort from the next turn on, by
// another process, since the program would ask the model whether it is there; mode at
// once, except full access, which a process must be started with.
func (d *driver) SetOption(ctx context.Context, o wire.ConfigOption) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch o.ConfigID {
	case "model":
		d.start.Model, d.stale = o.Value, true
	case "effort", "reasoning_effort":
		if err := checkEffort(o.Value); err != nil {
			return err
		}
		d.start.Effort, d.stale = o.Value, true
	case "mode", "permission_mode":
		return d.setMode(ctx, o.Value)
	default:
		return fmt.Errorf("agent claude has no option %q; it has model, effort and mode", o.ConfigID)
	}
	return nil
}

// setMode is called with the driver's mutex held.
func (d *driver) setMode(ctx context.Context, mode string) error {
	p := d.proc
	switch {
	case mode == "":
		return fmt.Errorf("the mode is empty")
	case mode == fullAccess, p == nil, p.over():
		d.start.PermissionMode, d.stale = mode, true
		return nil
	}
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	err := p.ask(ctx, map[string]any{"subtype": "set_permission_mode", "mode": mode})
	d.mu.Lock()
	if err != nil {
		return fmt.Errorf("set mode %q: %w", mode, err)
	}
	d.start.PermissionMode = mode
	return nil
}

// Refresh implements agentserver.Refresher: the next turn has a process that reads its
// environment anew and connects its MCP servers anew.
func (d *driver) Refresh(context.Context, json.RawMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale = true
	return nil
}

// begins takes the first line of a turn. Where the turn cannot be it has failed, and it
// says why.
func (d *driver) begins(p *process, m *message) string {
	cause := d.lacks(p, m)
	d.mu.Lock()
	t := d.turn
	if cause != "" {
		d.stale = true
	}
	d.mu.Unlock()
	if cause != "" && t != nil {
		d.finish(t, failed(cause))
	}
	return cause
}

// lacks says why the turn of m cannot be, or "".
func (d *driver) lacks(p *process, m *message) string {
	p.mu.Lock()
	p.version = m.Version
	if p.version == "" {
		p.version = "unknown"
	}
	p.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Session != "" {
		d.session, d.kept = m.Session, true
	}
	if err := checkVersion(m.Version); err != nil {
		return err.Error()
	}
	status := map[string]string{}
	for _, s := range m.MCP {
		status[s.Name] = s.Status
	}
	for _, s := range d.start.MCP {
		// A server that is still pending may yet come: the program waits for it when the
		// model calls one of its tools.
		switch now := status[s.Name]; {
		case !s.Required, now == "connected", now == "pending":
		case now == "":
			return fmt.Sprintf("MCP server %q is required, and the agent does not have it", s.Name)
		default:
			return fmt.Sprintf("MCP server %q is required, and the agent could not connect to it (%s)", s.Name, now)
		}
	}
	return ""
}
