//go:build unix

package codex

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

func TestRealLeave(t *testing.T) {
	mcp := newMCP(t)
	r := began(t, wire.Start{
		Mode: string(task.ModeInteractive), PermissionMode: "read-only",
		MCP: []wire.MCPServer{{Name: "in", URL: mcp, Required: true}},
	})
	r.wantEnd("a read", r.do(bash("ls"), say("seen")), "seen")
	turn := func(option string, step fakemodel.Step) (map[string]any, result) {
		from := r.count()
		id := r.say(fakemodel.Script(step, say("done")), "")
		tool, _ := r.answer(from, option)
		return tool, r.end(id)
	}
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(r.dir, name)); return err == nil }
	tool, got := turn(task.RejectOnce, bash("touch no"))
	r.wantEnd("no", got, "done")
	if exists("no") || tool["title"] != "touch no" {
		t.Errorf("rejected %v", tool)
	}
	if tools := got.tools(); !slices.Equal(tools, []string{"execute touch no failed"}) {
		t.Errorf("%q", tools)
	}
	_, got = turn(task.AllowOnce, bash("touch yes"))
	r.wantEnd("yes", got, "done")
	if !exists("yes") {
		t.Error("allowed, and not done")
	}
	_, got = turn(task.AllowAlways, bash("touch twice"))
	r.wantEnd("always", got, "done")
	r.wantEnd("always, again", r.do(fakemodel.Step{ID: "2"}, bash("touch twice"), say("done")), "done")
	tool, _ = turn(task.RejectOnce, fakemodel.Step{Write: &fakemodel.Write{Path: filepath.Join(r.dir, "file"), Content: "x"}})
	if exists("file") || tool["kind"] != "edit" || !strings.HasPrefix(tool["title"].(string), "edit ") {
		t.Errorf("rejected %v", tool)
	}
	tool, got = turn(task.RejectOnce, fakemodel.Step{Tool: "mcp__in__echo", Args: json.RawMessage(`{"v":"a"}`)})
	if tool["title"] != "mcp__in__echo" || got.stop != "end_turn" || !strings.Contains(got.tools()[0], "failed") {
		t.Errorf("rejected %v, %q", tool, got.tools())
	}
	_, got = turn(task.AllowAlways, fakemodel.Step{Tool: "mcp__in__echo", Args: json.RawMessage(`{"v":"b"}`)})
	if tools := got.tools(); !slices.Equal(tools, []string{`other mcp__in__echo completed "echo b"`}) {
		t.Errorf("%q", tools)
	}
	got = r.do(fakemodel.Step{Tool: "mcp__in__echo", Args: json.RawMessage(`{"v":"c"}`)}, say("done"))
	if tools := got.tools(); !slices.Equal(tools, []string{`other mcp__in__echo completed "echo c"`}) {
		t.Errorf("%q", tools)
	}
}

// A run that nobody watches is not held up: who is not there has said no.
func TestRealLeaveOfNobody(t *testing.T) {
	r := began(t, wire.Start{Mode: string(task.ModeBackground), PermissionMode: "plan"})
	r.wantEnd("turn", r.do(bash("touch no"), say("planned")), "planned")
	if _, err := os.Stat(filepath.Join(r.dir, "no")); err == nil {
		t.Error("it was done")
	}
	if !slices.ContainsFunc(r.bodies(), func(b string) bool { return strings.Contains(b, "Plan Mode") }) {
		t.Error("the model knows nothing of plan mode")
	}
	r.input(task.Input{Kind: task.InputOption, Name: "mode", Value: "full-access"})
	r.wantEnd("then", r.do(bash("touch yes"), say("done")), "done")
	if _, err := os.Stat(filepath.Join(r.dir, "yes")); err != nil {
		t.Error("it was not done")
	}
}

// newMCP is an MCP server with one tool, which wants the run's token.
func newMCP(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments struct {
					V string `json:"v"`
				} `json:"arguments"`
			} `json:"params"`
		}
		switch {
		case q.Header.Get("Authorization") != "Bearer insx_run":
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		case q.Method != http.MethodPost:
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		_ = json.NewDecoder(q.Body).Decode(&m)
		var result any
		switch m.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]string{"name": "in", "version": "1"},
			}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{
				"name": "echo", "description": "echo",
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"v": map[string]string{"type": "string"}}},
			}}}
		case "tools/call":
			result = map[string]any{"content": []any{map[string]string{"type": "text", "text": "echo " + m.Params.Arguments.V}}}
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}))
	t.Cleanup(server.Close)
	return server.URL + "/in"
}

func TestRealMCP(t *testing.T) {
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	good := wire.MCPServer{Name: "in", URL: newMCP(t), Required: true}
	r := began(t, wire.Start{MCP: []wire.MCPServer{good, {Name: "extra", URL: broken.URL}}})
	got := r.do(fakemodel.Step{Tool: "mcp__in__echo", Args: json.RawMessage(`{"v":"a"}`)}, say("done"))
	r.wantEnd("call", got, "done")
	if tools := got.tools(); !slices.Equal(tools, []string{`other mcp__in__echo completed "echo a"`}) {
		t.Errorf("%q", tools)
	}
	r.await(0, "warning", func(e event) bool {
		text, _ := e.data["message"].(string)
		return e.method == "_insights/console" && strings.HasPrefix(text, "the MCP server extra is not connected: ")
	})

	r = began(t, wire.Start{MCP: []wire.MCPServer{{Name: "needed", URL: broken.URL, Required: true}}})
	got = r.do(say("done"))
	if got.stop != "error" || !strings.HasPrefix(got.err, `the MCP server "needed" is required and is not connected: `) {
		t.Errorf("%q %q", got.stop, got.err)
	}
	if n := len(r.model.Requests()); n != 0 {
		t.Errorf("%d requests to the model", n)
	}
}

// Full access is full: Codex itself would refuse such a command where it may not ask.
func TestRealFullAccessIsFull(t *testing.T) {
	r := began(t, wire.Start{})
	got := r.do(bash("mkdir -p d/e && rm -rf d && echo gone"), say("done"))
	r.wantEnd("turn", got, "done")
	if tools := got.tools(); len(tools) != 1 || !strings.HasSuffix(tools[0], `completed "gone\n"`) {
		t.Errorf("tools %q", tools)
	}
}
