package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

// tell makes all logs and spans of events.
func tell(events []task.Event, s task.Spec) (logs []logRecord, spans []span) {
	st := newStory(s, s.Telemetry.TracesURL != "")
	for _, ev := range events {
		l, p := st.event(ev)
		logs, spans = append(logs, l...), append(spans, p...)
	}
	return logs, spans
}

func show(all []attribute) string {
	var words []string
	for _, a := range all {
		v := a.Value.Int
		if a.Value.String != nil {
			v = *a.Value.String
		}
		if a.Value.Double != nil {
			v = fmt.Sprint(*a.Value.Double)
		}
		words = append(words, a.Key+"="+v)
	}
	return strings.Join(words, " ")
}

// What is told of a run: each log with its severity and attributes, each span with its
// place in the trace. It is the contract with whoever looks at it.
func TestWhatIsToldOfARun(t *testing.T) {
	logs, spans := tell(aRun(), spec("http://h"))
	names := map[string]string{spanID(spec("").Run, "task_run", 0): "task_run"}
	for _, s := range spans {
		names[s.SpanID] = s.Name
	}
	var got []string
	for _, l := range logs {
		if l.TraceID != "aaaaaaaa000040008000000000000001" || l.Flags != 1 {
			t.Errorf("%+v", l)
		}
		got = append(got, fmt.Sprintf("%s %s @%s", l.Level, show(l.Attributes), names[l.SpanID]))
	}
	used := "tokens_input=10 tokens_output=5 tokens_cached_read=3 tokens_cached_write=2 cost_usd=0.5"
	hashed := opaque(canary + ` "x"`)
	want := []string{
		"INFO event_type=run_started @task_run",
		"INFO event_type=progress step=context status=in_progress group=setup @task_run",
		"INFO event_type=progress step=follow status=in_progress group=setup @task_run",
		"INFO event_type=sdk_session session_id=sess-1 @turn",
		"INFO event_type=tool_call tool_kind=execute tool_call_id=call-1 tool_status=pending @tool_call:execute",
		"INFO event_type=tool_call_update tool_kind=execute tool_call_id=call-1 tool_status=completed @tool_call:execute",
		"INFO event_type=tool_call tool_kind=other tool_call_id=" + hashed + " tool_status=other @tool_call:other",
		"INFO event_type=usage_update model=model-1 " + used + " @turn",
		"INFO event_type=permission_request tool_kind=edit @turn",
		"INFO event_type=permission_resolved option=allow_once by=user @turn",
		"INFO event_type=turn_complete stop_reason=end_turn turn_index=1 @turn",
		"INFO event_type=tool_call tool_kind=fetch tool_call_id=call-2 tool_status=pending @tool_call:fetch",
		"INFO event_type=branch_created @turn",
		"INFO event_type=compact_boundary @turn",
		"ERROR event_type=error error_source=run error_category=task_failed @turn",
		"INFO event_type=task_complete state=failed " + used + " @task_run",
	}
	if !slices.Equal(got, want) {
		t.Errorf("logs:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	got = nil
	for _, s := range spans {
		took := (parse(s.End) - parse(s.Start)) / 1e9
		got = append(got, fmt.Sprintf("%s<%s kind=%d status=%d %ds %s", s.Name, names[s.ParentID], s.Kind, s.Status.Code, took, show(s.Attributes)))
	}
	want = []string{
		"tool_call:execute<turn kind=1 status=1 2s tool_kind=execute tool_call_id=call-1 tool_status=completed",
		"tool_call:other<turn kind=1 status=0 4s tool_kind=other tool_call_id=" + hashed + " tool_status=other",
		"turn<task_run kind=1 status=1 11s turn_index=1 stop_reason=end_turn " + used,
		"tool_call:fetch<turn kind=1 status=0 6s tool_kind=fetch tool_call_id=call-2 tool_status=interrupted",
		"turn<task_run kind=1 status=0 7s turn_index=2",
		"task_run< kind=2 status=2 21s state=failed " + used + " turns=2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("spans:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func parse(s string) (n int64) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// The status of the root: an error goes before the last turn, and a run without either has
// none.
func TestStatusOfTheRun(t *testing.T) {
	turn := func(stop string) func(*told) {
		return func(r *told) {
			r.add("turn_complete", "_insights/turn_complete", map[string]string{"stopReason": stop})
		}
	}
	failed := func(r *told) {
		r.add(task.KindTurn, "", task.Turn{Category: task.TurnInvalid, Error: canary})
	}
	interrupted := func(r *told) { r.add(task.KindTurn, "", task.Turn{Category: task.TurnCancelled}) }
	for name, tt := range map[string]struct {
		turns []func(*told)
		state task.State
		want  int
	}{
		"no turn":            {nil, task.StateCompleted, statusUnset},
		"end_turn":           {[]func(*told){turn("end_turn")}, task.StateCompleted, statusOK},
		"error":              {[]func(*told){turn("error")}, task.StateCompleted, statusError},
		"error, then not":    {[]func(*told){turn("error"), turn("end_turn")}, task.StateCompleted, statusOK},
		"refusal":            {[]func(*told){turn("refusal")}, task.StateCompleted, statusUnset},
		"failed":             {[]func(*told){turn("end_turn")}, task.StateFailed, statusError},
		"a turn failed":      {[]func(*told){turn("end_turn"), failed}, task.StateCompleted, statusError},
		"a turn interrupted": {[]func(*told){turn("cancelled"), interrupted}, task.StateCancelled, statusUnset},
	} {
		r := &told{}
		r.step("follow", task.StepInProgress)
		for _, f := range tt.turns {
			f(r)
		}
		r.add(task.KindFinished, "", task.Result{State: tt.state})
		_, spans := tell(r.all, spec("http://h"))
		if root := spans[len(spans)-1]; root.Name != "task_run" || root.Status.Code != tt.want {
			t.Errorf("%s: %+v", name, root)
		}
	}
}

// Without a place for traces logs name no span that nobody could find.
func TestLogsWithoutTraces(t *testing.T) {
	s := spec("http://h")
	s.Telemetry.TracesURL = ""
	logs, _ := tell(aRun(), s)
	for _, l := range logs {
		if l.TraceID != "" || l.SpanID != "" || l.Flags != 0 {
			t.Errorf("%+v", l)
		}
	}
}

// A plain command has no turns.
func TestACommandHasNoTurns(t *testing.T) {
	r := &told{}
	r.step("follow", task.StepInProgress)
	r.add(task.KindFinished, "", task.Result{State: task.StateCompleted})
	s := spec("http://h")
	s.Agent = task.Agent{Name: task.AgentExec, Command: []string{canary}}
	if _, spans := tell(r.all, s); len(spans) != 1 {
		t.Errorf("%+v", spans)
	}
}

// Nobody can make it remember more than a bound: tools that never end, branches.
func TestToolsAreBounded(t *testing.T) {
	st := newStory(spec("http://h"), true)
	r := &told{}
	for i := range 3 * maxTools {
		r.tool("tool_call", fmt.Sprint("t", i), "read", "pending")
	}
	for _, ev := range r.all {
		st.event(ev)
	}
	if len(st.tools) != maxTools {
		t.Errorf("%d tools", len(st.tools))
	}
}

func TestOpaque(t *testing.T) {
	for id, same := range map[string]bool{
		"call_1-a.B:2": true, "": true, "with space": false, strings.Repeat("x", 129): false, "ü": false,
	} {
		if got := opaque(id); (got == id) != same || len(got) > 128 {
			t.Errorf("%q: %q", id, got)
		}
	}
}

func TestResource(t *testing.T) {
	s := spec("")
	s.Agent.Name = "acp:agent --key " + canary
	s.Provider = "modal"
	got := map[string]string{}
	for _, a := range resourceOf(s) {
		got[a.Key] = *a.Value.String
	}
	want := map[string]string{
		"service.name": "insights-code-agent", "service.version": got["service.version"], "run_id": string(s.Run), "task_id": string(s.Task),
		"team_id": "3", "user_id": "4", "distinct_id": "4", "device_type": "cloud", "adapter": "acp", "run_mode": "background",
	}
	if !maps.Equal(got, want) || got["service.version"] == "" {
		t.Errorf("%v", got)
	}
}
