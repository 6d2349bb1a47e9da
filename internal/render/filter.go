package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// Severity says how bad it is what an event tells.
type Severity int

// The severities.
const (
	Info  Severity = iota
	Warn           // a denied connection, a reply that is worth nothing, a cancelled run
	Error          // a step, turn, tool, command or run that failed
)

// ParseSeverity reads the name of a severity.
func ParseSeverity(s string) (Severity, error) {
	switch s {
	case "info":
		return Info, nil
	case "warn", "warning":
		return Warn, nil
	case "error":
		return Error, nil
	}
	return Info, fmt.Errorf("unknown severity %q; there are info, warn, error", s)
}

// Filter chooses events; its zero value chooses all. It remembers which tools were begun,
// and is therefore for the events of one run, in order.
type Filter struct {
	Kinds    []task.Kind // only of these kinds; empty: of any
	Tools    []string    // only of tools of this kind, or with this in their title
	Severity Severity    // only as bad as this, or worse
	From, To time.Time   // only from From on, and before To; zero: no bound

	begun map[string]bool // whether a tool is among Tools, by its id
}

// Empty reports whether the filter chooses all.
func (f *Filter) Empty() bool {
	return len(f.Kinds) == 0 && len(f.Tools) == 0 && f.Severity == Info && f.From.IsZero() && f.To.IsZero()
}

// Keep reports whether an event is chosen. It wants to see every event, also those that
// are not.
func (f *Filter) Keep(ev task.Event) bool {
	ofTool := f.ofTool(ev) // first: it remembers
	return ofTool && !ev.At.Before(f.From) && (f.To.IsZero() || ev.At.Before(f.To)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, ev.Kind)) &&
		(f.Severity == Info || SeverityOf(ev) >= f.Severity)
}

// toolEvent is as much of an event of a tool as a filter looks at.
type toolEvent struct {
	ToolCall toolNames `json:"toolCall"` // of a request for leave
	Update   struct {
		SessionUpdate string `json:"sessionUpdate"`
		toolNames
	} `json:"update"`
}

type toolNames struct {
	ID     string `json:"toolCallId"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
}

// ofTool reports whether an event belongs to one of the tools that are asked for.
func (f *Filter) ofTool(ev task.Event) bool {
	if len(f.Tools) == 0 {
		return true
	}
	var e toolEvent
	switch {
	case ev.Kind == task.KindPermission:
		return json.Unmarshal(ev.Params, &e) == nil && f.named(e.ToolCall)
	case ev.Kind != task.KindAgent || !bytes.Contains(ev.Params, []byte(`"tool_call`)) || json.Unmarshal(ev.Params, &e) != nil:
		return false
	}
	u := e.Update
	switch u.SessionUpdate {
	case "tool_call":
		f.note(u.ID, f.named(u.toolNames))
	case "tool_call_update":
		if f.named(u.toolNames) { // some agents say the title later
			f.note(u.ID, true)
		}
	default:
		return false
	}
	return f.begun[u.ID]
}

// note remembers a tool. There are only so many at work at once.
func (f *Filter) note(id string, wanted bool) {
	if f.begun == nil || len(f.begun) >= maxTitles {
		f.begun = map[string]bool{}
	}
	f.begun[id] = wanted
}

func (f *Filter) named(t toolNames) bool {
	title := strings.ToLower(t.Title)
	return slices.ContainsFunc(f.Tools, func(want string) bool {
		return strings.EqualFold(want, t.Kind) || strings.Contains(title, strings.ToLower(want))
	})
}

// SeverityOf says how bad it is what an event tells.
func SeverityOf(ev task.Event) Severity {
	switch ev.Kind {
	case task.KindStep:
		return worst(decode[task.Step](ev).Status == task.StepFailed)
	case task.KindAgent:
		return toolSeverity(ev)
	case task.KindOutput:
		if !bytes.HasPrefix(ev.Params, []byte(`{"exitCode"`)) {
			return Info
		}
		o := decode[task.Output](ev)
		return worst(o.ExitCode != nil && *o.ExitCode != 0)
	case task.KindDenied:
		return Warn
	case task.KindTurn:
		t := decode[task.Turn](ev)
		if t.OK && (t.Degraded || t.Attempts > 1) {
			return Warn
		}
		return worst(!t.OK)
	case task.KindNotice:
		s, _ := ParseSeverity(decode[task.Notice](ev).Level) // of an unknown level it is Info
		return s
	case task.KindFinished:
		r := decode[task.Result](ev)
		if r.State == task.StateCancelled {
			return Warn
		}
		return worst(r.State == task.StateFailed)
	case "error", "initialization_failed":
		return Error
	}
	return Info
}

func toolSeverity(ev task.Event) Severity {
	if !bytes.Contains(ev.Params, []byte(`"failed"`)) {
		return Info
	}
	e := decode[toolEvent](ev)
	return worst(strings.HasPrefix(e.Update.SessionUpdate, "tool_call") && e.Update.Status == "failed")
}

func worst(bad bool) Severity {
	if bad {
		return Error
	}
	return Info
}

// decode reads the parameters of an event; the zero value where they are not what they
// should be.
func decode[T any](ev task.Event) T {
	var v T
	if json.Unmarshal(ev.Params, &v) != nil {
		var none T
		return none
	}
	return v
}
