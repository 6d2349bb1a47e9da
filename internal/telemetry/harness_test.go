package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// canary stands in every text of the run of the tests that must not be told.
const canary = "canary text"

const token = "token-of-the-receiver-0123456789"

func began() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

func spec(url string) task.Spec {
	return task.Spec{
		Run: "aaaaaaaa-0000-4000-8000-000000000001", Task: "bbbbbbbb-0000-4000-8000-000000000002", Team: 3, User: 4,
		Title: canary, Description: canary, OriginProduct: "signals_scout", Agent: task.Agent{Name: task.AgentClaude},
		Mode: task.ModeBackground, Provider: "docker",
		Telemetry: task.Telemetry{
			Enabled: true, LogsURL: url + "/v1/logs", TracesURL: url + "/v1/traces", Mirror: true, MirrorURL: url + "/mirror/v1/logs",
		},
	}
}

// told makes the events of a run, a second apart.
type told struct{ all []task.Event }

func (r *told) add(kind task.Kind, method string, payload any) {
	params, err := json.Marshal(payload)
	if err != nil {
		panic(err) // of a test's own values
	}
	seq := uint64(len(r.all) + 1)
	r.all = append(r.all, task.Event{
		Run: spec("").Run, Seq: seq, At: began().Add(time.Duration(seq-1) * time.Second), Kind: kind, Method: method, Params: params,
	})
}

func (r *told) step(name, status string) {
	r.add(task.KindStep, "", task.Step{Step: name, Status: status, Label: canary, Group: "setup", Detail: canary})
}

func (r *told) update(fields map[string]any) {
	r.add(task.KindAgent, "session/update", map[string]any{"update": fields})
}

func (r *told) tool(update, id, kind, status string) {
	r.update(map[string]any{
		"sessionUpdate": update, "toolCallId": id, "kind": kind, "status": status, "title": canary,
		"rawInput": map[string]any{"command": canary, "status": canary}, "rawOutput": canary,
		"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": canary}}},
	})
}

// aRun are the events of a run with two turns, tools that end and tools that do not.
func aRun() []task.Event {
	r := &told{}
	r.step("context", task.StepInProgress)
	r.step("follow", task.StepInProgress)
	r.add("sdk_session", "_insights/sdk_session", map[string]string{"sessionId": "sess-1", "adapter": "claude", "version": "2"})
	r.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": canary + " "}})
	r.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": "and more"}})
	r.tool("tool_call", "call-1", "execute", "pending")
	r.tool("tool_call_update", "call-1", "", "in_progress")
	r.tool("tool_call_update", "call-1", "", "completed")
	r.tool("tool_call", canary+` "x"`, canary, canary)
	r.add(task.KindUsage, "", task.Usage{
		Model: "model-1", Request: task.Tokens{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, Total: 20, Requests: 1, CostUSD: 0.5},
		Run: task.Tokens{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, Total: 20, Requests: 1, CostUSD: 0.5},
	})
	r.add(task.KindPermission, "", map[string]any{"requestId": canary, "toolCall": map[string]any{"title": canary, "kind": "edit"}})
	r.add("permission_resolved", "_insights/permission_resolved", map[string]string{"requestId": canary, "optionId": "allow_once", "by": "user"})
	r.add("turn_complete", "_insights/turn_complete", map[string]any{"stopReason": "end_turn", "structured": canary})
	r.add(task.KindTurn, "", task.Turn{Number: 1, OK: true, Text: canary})
	r.add("user_message", "_insights/user_message", map[string]any{"messageId": "m1", "content": canary})
	r.tool("tool_call", "call-2", "fetch", "pending")
	r.add(task.KindNotice, "", task.Notice{Level: "error", Message: canary})
	r.add(task.KindOutput, "", task.Output{Stdout: canary, Lines: 1})
	r.add(task.KindPublished, "", task.Published{Org: "o", Name: "n", Branch: canary, SHA: "0", URL: canary})
	r.add("compact_boundary", "_insights/compact_boundary", map[string]string{"text": canary})
	r.add("later", "_insights/later", map[string]string{"text": canary})
	r.add(task.KindFinished, "", task.Result{State: task.StateFailed, Kind: "task_failed", Error: canary, Hint: canary})
	return r.all
}

// server is a receiver that a test can make to fail.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][][]byte // by path
	tokens []string
	answer func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

func newServer(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool) *server {
	t.Helper()
	s := &server{bodies: map[string][][]byte{}, answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.answer != nil && s.answer(w, r) {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies[r.URL.Path] = append(s.bodies[r.URL.Path], body)
		s.tokens = append(s.tokens, r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"partialSuccess":{}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// got are all records or spans that came to a path.
func (s *server) got(t *testing.T, path string) []map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for _, body := range s.bodies[path] {
		all = append(all, items(t, body)...)
	}
	return all
}

// items are the records or spans of a request, or of a line that a collector wrote.
func items(t *testing.T, body []byte) []map[string]any {
	t.Helper()
	var req map[string][]map[string]json.RawMessage
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var all []map[string]any
	for what, list := range map[string]string{"resourceLogs": "logRecords", "resourceSpans": "spans"} {
		for _, resource := range req[what] {
			var scopes []map[string]json.RawMessage
			if err := json.Unmarshal(resource["scope"+what[len("resource"):]], &scopes); err != nil {
				t.Fatal(err)
			}
			for _, scope := range scopes {
				var some []map[string]any
				if err := json.Unmarshal(scope[list], &some); err != nil {
					t.Fatal(err)
				}
				all = append(all, some...)
			}
		}
	}
	return all
}

// attrs are the attributes of an item, or of a resource, as texts.
func attrs(item map[string]any) map[string]string {
	out := map[string]string{}
	list, _ := item["attributes"].([]any)
	for _, a := range list {
		m := a.(map[string]any)
		for _, v := range m["value"].(map[string]any) {
			out[m["key"].(string)] = fmt.Sprint(v)
		}
	}
	return out
}

func options(t *testing.T, url string) Options {
	t.Helper()
	return Options{
		Spec: spec(url), LogsToken: secret.New(token), MirrorToken: secret.New(token), Dir: t.TempDir(),
		Client: NewClient(nil), Grace: 20 * time.Second,
	}
}

func begin(t *testing.T, o Options) *Run {
	t.Helper()
	r, err := New(t.Context(), o)
	if err != nil || r == nil {
		t.Fatalf("New: %v, %v", r, err)
	}
	return r
}
