package telemetry

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// story makes the logs and spans of agent telemetry of a run's events. It is a fold: the
// same events make the same, whoever reads them.
type story struct {
	run    task.ID
	drives bool // there is an agent that talks, and so has turns
	traces bool // logs carry the ids of spans

	begun    bool
	root     open
	turn     *open
	turns    int
	tools    map[string]*open
	branches map[string]bool
	stop     string // why the last turn ended
	failed   bool   // there was an error
	used     task.Tokens

	at    time.Time // of the event at hand
	logs  []logRecord
	spans []span
}

// open is a span that has not ended.
type open struct {
	id     string
	start  time.Time
	index  int    // of a turn
	kind   string // of a tool
	status string
	parent string
	used   task.Tokens
}

func newStory(spec task.Spec, traces bool) *story {
	return &story{
		run: spec.Run, drives: spec.Agent.Drives(), traces: traces,
		tools: map[string]*open{}, branches: map[string]bool{},
	}
}

// event takes the next event of the run and returns what it tells others. What is returned
// is valid until the next event.
func (s *story) event(ev task.Event) ([]logRecord, []span) {
	s.logs, s.spans, s.at = s.logs[:0], s.spans[:0], ev.At
	if !s.begun {
		s.begun = true
		s.root = open{id: spanID(s.run, "task_run", 0), start: ev.At}
		s.log("run_started", severityInfo, s.root.id)
	}
	switch ev.Kind {
	case task.KindStep:
		read(ev, func(p task.Step) { s.step(ev, p) })
	case task.KindAgent:
		s.update(ev)
	case task.KindTurn:
		read(ev, s.judged)
	case task.KindUsage:
		read(ev, s.usage)
	case task.KindPublished:
		read(ev, s.published)
	case task.KindPermission:
		read(ev, func(p struct{ ToolCall struct{ Kind string } }) {
			s.log("permission_request", severityInfo, s.here(), text("tool_kind", toolKind(p.ToolCall.Kind)))
		})
	case task.KindFinished:
		read(ev, s.finished)
	case task.KindOutput, task.KindNotice, task.KindDenied: // not told
	default:
		s.method(ev)
	}
	return s.logs, s.spans
}

// read hands the payload of an event to f.
func read[T any](ev task.Event, f func(T)) {
	var p T
	if json.Unmarshal(ev.Params, &p) == nil {
		f(p)
	}
}

// here is the span that what happens now belongs to.
func (s *story) here() string {
	if s.turn != nil {
		return s.turn.id
	}
	return s.root.id
}

// log adds a record. Its body is its name: there is no text to tell.
func (s *story) log(name string, severity int, span string, more ...attribute) {
	body := name
	r := logRecord{
		Time: nano(s.at), Observed: nano(s.at), Severity: severity, Level: levelOf(severity), Body: value{String: &body},
		Attributes: append([]attribute{text("event_type", name)}, more...),
	}
	if s.traces {
		r.TraceID, r.SpanID, r.Flags = traceID(s.run), span, flagSampled
	}
	s.logs = append(s.logs, r)
}

// end adds a span that has ended.
func (s *story) end(o *open, name string, kind, code int, more ...attribute) {
	end := s.at
	if end.Before(o.start) {
		end = o.start // a sandbox's clock need not be ours
	}
	s.spans = append(s.spans, span{
		TraceID: traceID(s.run), SpanID: o.id, ParentID: o.parent, Flags: flagSampled, Name: name, Kind: kind,
		Start: nano(o.start), End: nano(end), Attributes: more, Status: status{code},
	})
}

// step takes a step of the host's. The run's own prompt has no message: its turn begins
// when the host begins to follow the agent.
func (s *story) step(ev task.Event, p task.Step) {
	severity := severityInfo
	if p.Status == task.StepFailed {
		severity = severityError
	}
	s.log("progress", severity, s.here(), text("step", p.Step), text("status", p.Status), text("group", p.Group))
	switch {
	case p.Step == "agent" && p.Status == task.StepFailed:
		s.failed = true
		s.log("initialization_failed", severityError, s.here())
	case p.Step == "follow" && p.Status == task.StepInProgress && s.drives && s.turns == 0:
		s.begin(ev)
	}
}

// begin begins a turn. One that has not ended is over by that.
func (s *story) begin(ev task.Event) {
	s.endTurn("", statusUnset)
	s.turns++
	s.turn = &open{id: spanID(s.run, "turn", ev.Seq), start: ev.At, index: s.turns, parent: s.root.id}
}

// endTurn ends the turn that is going on, with the tools that still are.
func (s *story) endTurn(reason string, code int) {
	s.endTools("")
	if s.turn == nil {
		return
	}
	t := s.turn
	s.turn = nil
	more := []attribute{number("turn_index", int64(t.index))}
	if reason != "" {
		more = append(more, text("stop_reason", reason))
	}
	s.end(t, "turn", kindInternal, code, append(more, tokens(t.used)...)...)
}

// update takes an update of the agent's: what tools it uses, and its mode.
func (s *story) update(ev task.Event) {
	var kind, id, tool, status, mode string
	members(ev.Params, func(key string, v []byte) {
		if key != "update" {
			return
		}
		members(v, func(key string, v []byte) {
			switch key {
			case "sessionUpdate":
				kind = unquote(v)
			case "toolCallId":
				id = unquote(v)
			case "kind":
				tool = unquote(v)
			case "status":
				status = unquote(v)
			case "currentModeId":
				mode = unquote(v)
			}
		})
	})
	switch kind {
	case "tool_call", "tool_call_update":
		s.tool(ev, kind, id, tool, toolStatus(status))
	case "current_mode_update":
		s.log("mode_change", severityInfo, s.here(), text("mode", permissionMode(mode)))
	}
}

// judged takes what came of a turn. One that was interrupted is none that failed.
func (s *story) judged(p task.Turn) {
	if !p.OK && p.Category != task.TurnCancelled {
		s.fail("turn", p.Category)
	}
}

// fail notes an error: where it comes from and of what kind it is, never its text.
func (s *story) fail(source, kind string) {
	s.failed = true
	s.log("error", severityError, s.here(), text("error_source", source), text("error_category", category(kind)))
}

func (s *story) usage(p task.Usage) {
	s.used = p.Run
	if s.turn != nil {
		s.turn.used = s.turn.used.Add(p.Request)
	}
	s.log("usage_update", severityInfo, s.here(), append([]attribute{text("model", opaque(p.Model))}, tokens(p.Request)...)...)
}

// tokens are what was used, if anything was.
func tokens(t task.Tokens) []attribute {
	if t == (task.Tokens{}) {
		return nil
	}
	return []attribute{
		number("tokens_input", t.Input), number("tokens_output", t.Output),
		number("tokens_cached_read", t.CacheRead), number("tokens_cached_write", t.CacheWrite),
		decimal("cost_usd", t.CostUSD),
	}
}

// published takes a commit or a pull request. Names of branches are words of the agent's.
func (s *story) published(p task.Published) {
	branch := strings.Join([]string{p.Org, p.Name, p.Branch}, "/")
	switch {
	case p.Pull > 0:
		s.log("progress", severityInfo, s.here(), text("step", "pr"), text("status", task.StepCompleted), text("group", "setup"))
	case !s.branches[branch] && len(s.branches) < maxTools:
		s.branches[branch] = true
		s.log("branch_created", severityInfo, s.here())
	}
}

// method takes an event that has no kind of its own. The sandbox could call a method
// whatever it likes: those that are told are known by name.
func (s *story) method(ev task.Event) {
	switch strings.Replace(ev.Method, "__insights/", "_insights/", 1) {
	case wire.EventUserMessage:
		read(ev, func(p struct{ Steer bool }) {
			if !p.Steer { // which goes into a turn that is another's
				s.begin(ev)
			}
		})
	case wire.EventTurnComplete:
		read(ev, s.turnComplete)
	case wire.EventPermitted:
		read(ev, func(p struct{ OptionID, By string }) {
			s.log("permission_resolved", severityInfo, s.here(), text("option", decision(p.OptionID)), text("by", decider(p.By)))
		})
	case "_insights/sdk_session":
		read(ev, func(p struct{ SessionID, Adapter, Version string }) {
			s.log("sdk_session", severityInfo, s.here(), text("session_id", opaque(p.SessionID)))
		})
	case "_insights/mode_change":
		s.log("mode_change", severityInfo, s.here())
	case "_insights/compact_boundary":
		s.log("compact_boundary", severityInfo, s.here())
	case "_insights/permission_response":
		s.log("permission_response", severityInfo, s.here())
	case "_insights/error":
		s.fail("agent", "")
	case "_insights/initialization_failed":
		s.failed = true
		s.log("initialization_failed", severityError, s.here())
	}
}

func (s *story) turnComplete(p wire.TurnComplete) {
	s.stop = stopReason(p.StopReason)
	more := []attribute{text("stop_reason", s.stop)}
	if s.turn != nil {
		more = append(more, number("turn_index", int64(s.turn.index)))
	}
	severity := severityInfo
	if s.stop == "error" {
		severity = severityError
	}
	s.log("turn_complete", severity, s.here(), more...)
	s.endTurn(s.stop, codeOf(s.stop))
}

func codeOf(stop string) int {
	switch stop {
	case "end_turn":
		return statusOK
	case "error":
		return statusError
	}
	return statusUnset
}

// finished takes the end of the run. An error goes before what the last turn says.
func (s *story) finished(p task.Result) {
	if p.State == task.StateFailed {
		s.fail("run", p.Kind)
		s.endTools("interrupted")
	}
	s.endTurn("", statusUnset)
	if p.Usage != nil {
		s.used = *p.Usage
	}
	more := append([]attribute{text("state", string(p.State))}, tokens(s.used)...)
	s.log("task_complete", severityInfo, s.root.id, more...)
	code := codeOf(s.stop)
	if s.failed {
		code = statusError
	}
	s.end(&s.root, "task_run", kindServer, code, append(more, number("turns", int64(s.turns)))...)
}
