package acp

import (
	"context"
	"encoding/json"
	"fmt"
)

// update puts one session update into the journal, as it is.
func (r *reader) update(ctx context.Context, params json.RawMessage) error {
	var p struct {
		Update json.RawMessage `json:"update"`
	}
	var head struct {
		Kind string `json:"sessionUpdate"`
	}
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p.Update, &head) != nil || head.Kind == "" || r.agent.muted.Load() {
		return nil // none
	}
	err := r.host.Update(ctx, p.Update)
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.host.Log.Warn("an update is cut", "kind", head.Kind, "err", err)
	if err := r.host.Update(ctx, cut(p.Update)); err != nil {
		return ctx.Err()
	}
	return nil
}

// cut is the short fields of an update that is too long for an event, and a word about
// the others.
func cut(update json.RawMessage) map[string]any {
	const short, most = 2 << 10, 32
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(update, &fields) // an object: it was read before
	out := map[string]any{}
	left := 0
	for name, value := range fields {
		if name == "sessionUpdate" || len(value) <= short && len(out) < most {
			out[name] = value
		} else {
			left += len(value)
		}
	}
	note := fmt.Sprintf("[%d bytes are left out]", left)
	out["_meta"] = map[string]string{"insights": note}
	return out
}
