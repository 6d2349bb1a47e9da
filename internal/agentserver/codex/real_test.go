//go:build unix

package codex

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
	"github.com/Insights/insightscli/test/fakemodel"
)

// realProgram is the variable that names the real Codex, in its own layout.
const realProgram = "INSIGHTSCLI_TEST_CODEX"

const model = "gpt-5.5"

// real is a place with the real Codex and a model that does what the prompt says.
type real struct {
	*place
	model *fakemodel.Model
}

// newReal returns a place whose session has not begun.
func newReal(t *testing.T, env map[string]string) *real {
	t.Helper()
	program := os.Getenv(realProgram)
	if program == "" {
		program, _ = exec.LookPath(Name)
	}
	testenv.Need(t, "codex, which "+realProgram+" may name", program != "")
	m := fakemodel.New(fakemodel.Options{RequireKey: "insx_run"})
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	all := map[string]string{
		"PATH":            filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"OPENAI_BASE_URL": server.URL + "/openai/v1",
	}
	for k, v := range env {
		all[k] = v
	}
	return &real{newPlace(t, all), m}
}

// began is a place whose session has begun.
func began(t *testing.T, start wire.Start) *real {
	t.Helper()
	r := newReal(t, nil)
	start.Model = model
	r.must(r.start(start))
	return r
}

func bash(command string) fakemodel.Step { return fakemodel.Step{Bash: command} }

var say = fakemodel.Say

// do is a turn with that script.
func (r *real) do(steps ...fakemodel.Step) result {
	r.t.Helper()
	return r.turn(fakemodel.Script(steps...), "")
}

// bodies are the requests to the model, as text.
func (r *real) bodies() []string {
	var list []string
	for _, q := range r.model.Requests() {
		list = append(list, string(q.Body))
	}
	return list
}

func (r *real) wantEnd(what string, got result, text string) {
	r.t.Helper()
	if got.stop != "end_turn" || got.err != "" || got.text() != text {
		r.t.Errorf("%s: %q %q %q", what, got.stop, got.err, got.text())
	}
}

func TestRealTurns(t *testing.T) {
	r := began(t, wire.Start{Effort: "high"})
	got := r.do(fakemodel.Step{Bash: "echo one; exit 3", Say: "I look.", Think: "hm"}, say("It is two words."))
	r.wantEnd("first", got, "I look.It is two words.")
	if tools := got.tools(); !slices.Equal(tools, []string{`execute echo one; exit 3 failed "one\n"`}) {
		t.Errorf("tools %q", tools)
	}
	if thought := got.chunks("agent_thought_chunk"); thought != "hm" {
		t.Errorf("thoughts %q", thought)
	}
	file := filepath.Join(r.dir, "new.txt")
	got = r.do(fakemodel.Step{Write: &fakemodel.Write{Path: file, Content: "hello\n"}}, say("Written."))
	r.wantEnd("second", got, "Written.")
	if b, err := os.ReadFile(file); string(b) != "hello\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if tools := got.tools(); !slices.Equal(tools, []string{`edit edit ` + file + ` completed "hello\n"`}) {
		t.Errorf("tools %q", tools)
	}
	last := r.bodies()[len(r.bodies())-1]
	if !strings.Contains(last, "It is two words.") || !strings.Contains(last, `"effort":"high"`) {
		t.Errorf("the second turn knows nothing of the first, or of the effort: %.300s", last)
	}
	if _, at := r.await(0, "usage", func(e event) bool { return e.update("usage_update") != nil }); at == 0 {
		t.Error("usage before anything")
	}
}

// The first directory of PATH is ours: in it lies the git that pushes nothing. A login
// shell would not have it. Tokens that are ours are not in the environment of commands;
// what tools need is.
func TestRealCommandEnvironment(t *testing.T) {
	r := newReal(t, map[string]string{"GIT_CONFIG_KEY_0": "user.name", "NPM_TOKEN": "theirs", "INSIGHTS_PROJECT_ID": "7", "CODEX_HOME": filepath.Join(t.TempDir(), "made", "codex")})
	r.must(r.start(wire.Start{Model: model}))
	got := r.do(bash("command env; echo; echo $PATH > path; env > env"), say("done"))
	r.wantEnd("turn", got, "done")
	b, err := os.ReadFile(filepath.Join(r.dir, "path"))
	r.must(err)
	ours := 0
	for _, dir := range strings.Split(strings.TrimSpace(string(b)), ":") {
		if dir == "/opt/insights/bin" {
			ours++
			break
		}
		if _, err := os.Stat(filepath.Join(dir, "git")); err == nil {
			t.Errorf("%s goes before ours and has a git", dir)
		}
	}
	if ours == 0 {
		t.Errorf("PATH %s", b)
	}
	b, err = os.ReadFile(filepath.Join(r.dir, "env"))
	r.must(err)
	for _, name := range []string{"OPENAI_API_KEY", "INSIGHTS_PERSONAL_API_KEY"} {
		if strings.Contains(string(b), name+"=") || strings.Contains(string(b), "insx_run") {
			t.Errorf("%s is in the environment of commands", name)
		}
	}
	for _, name := range []string{"INSIGHTS_API_URL", "INSIGHTS_PROJECT_ID", "GIT_CONFIG_KEY_0", "NPM_TOKEN"} {
		if !strings.Contains(string(b), name+"=") {
			t.Errorf("%s is not in the environment of commands", name)
		}
	}
	got = r.do(fakemodel.Step{Tool: "exec_command", Args: json.RawMessage(`{"cmd":"touch login","login":true}`)}, say("done"))
	if _, err := os.Stat(filepath.Join(r.dir, "login")); err == nil || got.stop != "end_turn" {
		t.Errorf("a login shell was had: %q, %v", got.stop, err)
	}
}

func TestRealSchema(t *testing.T) {
	r := began(t, wire.Start{})
	script := fakemodel.Script(fakemodel.Step{Structured: json.RawMessage(`{"n":12345678901234567890}`)})
	strict := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	loose := `{"type":"object","properties":{"n":{"type":"integer"}}}`
	for schema, inRequest := range map[string]string{strict: `"json_schema"`, loose: "Your last message must be one JSON value"} {
		got := r.turn(script, schema)
		if got.stop != "end_turn" || got.structured == "" {
			t.Errorf("%s: %q %q", schema, got.stop, got.structured)
		}
		if last := r.bodies()[len(r.bodies())-1]; !strings.Contains(last, inRequest) {
			t.Errorf("%s: the request has no %s", schema, inRequest)
		}
	}
	if got := r.turn(fakemodel.Script(say("no JSON")), loose); got.stop != "end_turn" || got.structured != "" {
		t.Errorf("%q %q", got.stop, got.structured)
	}
}

// The command of an interrupted turn does not live on, and the session does.
func TestRealInterrupt(t *testing.T) {
	r := began(t, wire.Start{})
	from := r.count()
	id := r.say(fakemodel.Script(bash("echo $$ > pid; exec sleep 1000"), say("no")), "")
	r.running(from)
	pid := r.pid("pid")
	r.input(task.Input{Kind: task.InputInterrupt})
	got := r.end(id)
	if got.stop != "cancelled" || got.err != "" || !slices.Equal(got.tools(), []string{"execute echo $$ > pid; exec sleep 1000 failed"}) {
		t.Errorf("%q %q %q", got.stop, got.err, got.tools())
	}
	r.gone(pid)
	r.wantEnd("next", r.do(say("on")), "on")
}

// pid waits for the file in which a command has written its process id.
func (r *real) pid(name string) int {
	r.t.Helper()
	var pid int
	r.poll("process id", func() bool {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		return err == nil && json.Unmarshal(b, &pid) == nil
	})
	return pid
}

func (r *real) gone(pid int) {
	r.t.Helper()
	r.poll("end of the command", func() bool { return syscall.Kill(pid, 0) != nil })
}

func (r *real) poll(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), hangs)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("no %s", what)
		}
	}
}

func TestRealSteer(t *testing.T) {
	r := began(t, wire.Start{})
	from := r.count()
	id := r.say(fakemodel.Script(bash("until [ -e go ]; do read -t 0.05 x < /dev/zero; done"), say("done")), "")
	r.running(from)
	r.input(task.Input{ID: "steer", Kind: task.InputSteer, Text: "mind the gap"})
	r.must(os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600))
	r.wantEnd("turn", r.end(id), "done")
	if last := r.bodies()[len(r.bodies())-1]; !strings.Contains(last, "mind the gap") {
		t.Error("the model was not told")
	}
}

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

func TestRealModelFails(t *testing.T) {
	r := began(t, wire.Start{})
	for _, status := range []int{400, 401, 403} { // another try is of no use
		before := len(r.model.Requests())
		got := r.do(fakemodel.Step{Status: status, Message: "scripted words"})
		if got.stop != "error" || !strings.Contains(got.err, "scripted words") || got.text() != "" {
			t.Errorf("%d: %q %q", status, got.stop, got.err)
		}
		if n := len(r.model.Requests()) - before; n > 2 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
	// What is said twice, because the connection was cut, is told once.
	got := r.do(fakemodel.Step{Cut: true, Times: 1}, say("a b c d e f g h"))
	r.wantEnd("cut", got, "a b c d e f g h")
	got = r.do(fakemodel.Step{Status: 500, Times: 1}, say("after a while"))
	r.wantEnd("500 once", got, "after a while")
	got = r.do(fakemodel.Step{Status: 429, RetryAfter: "0", Times: 1}, say("after 429"))
	r.wantEnd("429 once", got, "after 429")
}

// What Codex loses with its process it has written down.
func TestRealProcessDies(t *testing.T) {
	r := began(t, wire.Start{})
	r.wantEnd("first", r.do(say("remember me")), "remember me")
	from := r.count()
	id := r.say(fakemodel.Script(bash("echo $$ > pid; sleep 1000"), say("no")), "")
	r.running(from)
	pid := r.pid("pid")
	t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	r.driver.mu.Lock()
	child := r.driver.conn.pipe.Child
	r.driver.mu.Unlock()
	r.must(child.Signal(syscall.SIGKILL))
	if got := r.end(id); got.stop != "error" || !strings.HasPrefix(got.err, "codex ended by killed") {
		t.Errorf("%q %q", got.stop, got.err)
	}
	r.wantEnd("resumed", r.do(say("here")), "here")
	if last := r.bodies()[len(r.bodies())-1]; !strings.Contains(last, "remember me") {
		t.Error("the conversation is lost")
	}
}

// Codex takes a prompt of a mebibyte, and says so of a longer one.
func TestRealLongPrompts(t *testing.T) {
	r := began(t, wire.Start{})
	got := r.turn(strings.Repeat("x", 1<<20-1000)+fakemodel.Script(say("read")), "")
	r.wantEnd("1 MB", got, "read")
	got = r.turn(strings.Repeat("x", 2<<20), "")
	if got.stop != "error" || !strings.Contains(got.err, "maximum length") {
		t.Errorf("2 MB: %q %q", got.stop, got.err)
	}
}

// A model or a gateway that is not there is waited for, but not for ever.
func TestRealOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no gateway": {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "Connection failed"},
		"500":        {nil, "high demand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, tt.env)
			r.must(r.start(wire.Start{Model: model}))
			got := r.do(fakemodel.Step{Status: 500})
			if got.stop != "error" || !strings.Contains(got.err, tt.want) {
				t.Errorf("%q %q", got.stop, got.err)
			}
			if n := len(r.model.Requests()); tt.env == nil && n < 6 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
