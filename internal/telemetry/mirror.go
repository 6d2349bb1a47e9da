package telemetry

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// mirrorScope is the service that mirrored entries come from.
	mirrorScope = "task-run-log-mirror"
	// maxLine and maxMirrored are the longest bodies, in characters, of a structured line
	// and of a record.
	maxLine     = 8000
	maxMirrored = 32000
	// Entries of one run are mirrored in batches of mirrorMost, one every mirrorPause; what
	// is more is counted.
	mirrorMost  = 200
	mirrorPause = 500 * time.Millisecond
)

// entry is one entry of a run's log as it is mirrored.
type entry struct {
	at       time.Time
	severity int
	method   string
	update   string // kind of a session/update
	body     string
}

// mirror makes entries of a run's events. The pieces of an agent's message are one entry,
// as a reader of the log sees it.
type mirror struct {
	said strings.Builder // by the agent, so far
	at   time.Time       // when it began to
}

// event takes the next event. There is an entry for it, and before it one for what the
// agent has said, if that is over with it.
func (m *mirror) event(ev task.Event) []entry {
	if ev.Kind != task.KindAgent {
		return append(m.flush(), m.other(ev))
	}
	kind, body := m.update(ev)
	if kind != "agent_message_chunk" {
		return append(m.flush(), entry{ev.At, severityInfo, wire.EventUpdate, kind, body})
	}
	if m.said.Len() == 0 {
		m.at = ev.At
	}
	if m.said.Len() < maxMirrored*4 {
		m.said.WriteString(body)
	}
	return nil
}

// flush is the entry of what the agent has said.
func (m *mirror) flush() []entry {
	if m.said.Len() == 0 {
		return nil
	}
	e := entry{m.at, severityInfo, wire.EventUpdate, "agent_message", "[agent_message] " + m.said.String()}
	m.said.Reset()
	return []entry{e}
}

// update reads an update of the agent's, as much as an entry holds of it.
func (m *mirror) update(ev task.Event) (kind, body string) {
	var title, status string
	var content []byte
	members(ev.Params, func(key string, v []byte) {
		if key != "update" {
			return
		}
		members(v, func(key string, v []byte) {
			switch key {
			case "sessionUpdate":
				kind = unquote(v)
			case "title":
				title = beginning(v, maxMirrored)
			case "status":
				status = unquote(v)
			case "content":
				content = v
			}
		})
	})
	said := ""
	members(content, func(key string, v []byte) {
		if key == "text" {
			said = beginning(v, maxMirrored)
		}
	})
	switch {
	case kind == "agent_message_chunk":
		return kind, said
	case kind == "tool_call" || kind == "tool_call_update":
		return kind, "[" + kind + "] " + strings.TrimSpace(title+" ("+status+")")
	case said != "":
		return kind, "[" + kind + "] " + said
	}
	return kind, asJSON(ev)
}

// other is the entry of an event that is no update of the agent's.
func (m *mirror) other(ev task.Event) entry {
	e := entry{at: ev.At, severity: severityInfo, method: methodOf(ev), body: asJSON(ev)}
	var message, level, stop string
	members(ev.Params, func(key string, v []byte) {
		switch key {
		case "message", "error":
			if message == "" {
				message = beginning(v, maxMirrored)
			}
		case "level":
			level = unquote(v)
		case "stopReason":
			stop = unquote(v)
		}
	})
	switch {
	case ev.Kind == task.KindOutput:
		e.body = outputBody(ev)
	case e.method == wire.EventTurnComplete:
		e.body = "[turn_end] " + stop
	case e.method == "_insights/error", ev.Kind == task.KindNotice:
		if message != "" {
			e.body = message
		}
		if e.severity = severityOf(level); e.method == "_insights/error" {
			e.severity = severityError
		}
	}
	return e
}

// severityOf is the severity of a notice's level.
func severityOf(level string) int {
	switch level {
	case "debug":
		return severityDebug
	case "warn", "warning":
		return severityWarn
	case "error":
		return severityError
	}
	return severityInfo
}

// outputBody is the entry of a piece of a command's output.
func outputBody(ev task.Event) string {
	o, err := ev.Output()
	if err != nil {
		return asJSON(ev)
	}
	if o.ExitCode != nil {
		return "[sandbox_output exit=" + strconv.Itoa(*o.ExitCode) + "]"
	}
	_, b, err := o.Bytes()
	if err != nil {
		return asJSON(ev)
	}
	return "[sandbox_output] " + string(b)
}

// methodOf is the method of an event as it stands in the log.
func methodOf(ev task.Event) string {
	if ev.Method != "" {
		return strings.Replace(ev.Method, "__insights/", "_insights/", 1)
	}
	return task.MethodOf(ev.Kind)
}

// asJSON is the beginning of an event's parameters.
func asJSON(ev task.Event) string {
	return string(ev.Params[:min(len(ev.Params), maxMirrored*4)])
}

// beginning reads a string of JSON, as much of it as has most characters.
func beginning(raw []byte, most int) string {
	bound := most * 6 // \u0000
	if len(raw) <= bound {
		var s string
		_ = json.Unmarshal(raw, &s) // of what is no string nothing is read
		return s
	}
	if raw[0] != '"' {
		return ""
	}
	for back := range 12 { // not within an escape, nor within a pair of them
		var s string
		if json.Unmarshal(append(raw[:bound-back:bound-back], '"'), &s) == nil {
			return s
		}
	}
	return ""
}

// mirrorSource is what all entries of a run have in common.
type mirrorSource struct {
	run, task task.ID
	team      int64
	origin    string
}

// record is the entry as an OTLP record.
func (m mirrorSource) record(e entry) []byte {
	body := cut(e.body, maxMirrored)
	r := logRecord{
		Time: nano(e.at), Observed: nano(e.at), Severity: e.severity, Level: levelOf(e.severity),
		Body: value{String: &body}, TraceID: traceID(m.run), Attributes: m.attributes(e),
	}
	b, _ := json.Marshal(r) // plain structs always marshal
	return b
}

func (m mirrorSource) attributes(e entry) []attribute {
	all := []attribute{
		text("event", "task_run_log"), text("task_run_id", string(m.run)), text("task_id", string(m.task)),
		number("team_id", m.team), text("origin_product", m.origin), text("acp_method", e.method),
	}
	if e.update != "" {
		all = append(all, text("acp_session_update", e.update))
	}
	return append(all, text("entry_timestamp", stamp(e.at)))
}

// line is the entry as a structured line of a process's log.
func (m mirrorSource) line(e entry) []byte {
	b, _ := json.Marshal(struct {
		Event     string  `json:"event"`
		Level     string  `json:"level"`
		Request   task.ID `json:"request_id"` // of which the collector makes the id of a trace
		Run       task.ID `json:"task_run_id"`
		Task      task.ID `json:"task_id"`
		Team      int64   `json:"team_id"`
		Origin    string  `json:"origin_product"`
		Body      string  `json:"body"`
		Method    string  `json:"acp_method"`
		Update    string  `json:"acp_session_update,omitempty"`
		Timestamp string  `json:"entry_timestamp"`
	}{
		"task_run_log", strings.ToLower(levelOf(e.severity)), m.run, m.run, m.task, m.team, m.origin,
		cut(e.body, maxLine), e.method, e.update, stamp(e.at),
	})
	return append(b, '\n')
}

// lost is the entry that says how many were left out.
func lost(n int64) entry {
	return entry{
		at: time.Now(), severity: severityWarn, method: "_insights/console",
		body: "[mirror] " + strconv.FormatInt(n, 10) + " entries of the log were not mirrored",
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
