package telemetry

import (
	"maps"
	"slices"

	"github.com/Insights/insightscli/internal/task"
)

// maxTools is of how many tools at work at the same time something is known.
const maxTools = 1024

// tool takes the beginning of a tool call, or what has changed of it.
func (s *story) tool(ev task.Event, update, id, kind, status string) {
	t := s.tools[id]
	over := status == "completed" || status == "failed"
	if update == "tool_call" && t == nil && len(s.tools) < maxTools {
		t = &open{id: spanID(s.run, "tool_call", ev.Seq), start: ev.At, kind: toolKind(kind), status: status, parent: s.here()}
		s.tools[id] = t
	}
	if t == nil { // of a turn that is over, or one too many: there is no span
		t = &open{id: s.here(), kind: toolKind(kind)}
	}
	if status != "" {
		t.status = status
	}
	if kind != "" {
		t.kind = toolKind(kind)
	}
	if update == "tool_call" || over {
		severity := severityInfo
		if t.status == "failed" {
			severity = severityWarn
		}
		s.log(update, severity, t.id, toolAttributes(id, t.kind, t.status)...)
	}
	if over && s.tools[id] != nil {
		s.endTool(id, t)
	}
}

// endTools ends all tools. status is how; empty: as they were.
func (s *story) endTools(status string) {
	for _, id := range slices.Sorted(maps.Keys(s.tools)) {
		t := s.tools[id]
		if status != "" {
			t.status = status
		}
		s.endTool(id, t)
	}
}

func (s *story) endTool(id string, t *open) {
	code := statusUnset
	switch t.status {
	case "completed":
		code = statusOK
	case "failed":
		code = statusError
	}
	delete(s.tools, id)
	s.end(t, "tool_call:"+t.kind, kindInternal, code, toolAttributes(id, t.kind, t.status)...)
}

func toolAttributes(id, kind, status string) []attribute {
	return []attribute{text("tool_kind", kind), text("tool_call_id", opaque(id)), text("tool_status", status)}
}
