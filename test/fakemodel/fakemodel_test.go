package fakemodel_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Insights/insightscli/test/fakemodel"
)

type object = map[string]any

func start(t *testing.T, o fakemodel.Options) (*fakemodel.Model, string) {
	t.Helper()
	m := fakemodel.New(o)
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	return m, srv.URL
}

func post(t *testing.T, url, key string, body any) (int, string, error) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// api is how one dialect says the same conversation.
type api struct {
	path   string
	tools  any
	list   string // the field with the conversation
	user   func(text string) object
	said   func(text string) object
	called func() object
	result func() object
	words  func(reply object) string // of a reply that is not a stream
	call   func(reply object) (name, args string)
}

func get(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(object)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func apis() map[string]api {
	part := func(kind, text string) []object { return []object{{"type": kind, "text": text}} }
	return map[string]api{
		"anthropic": {
			path: "/anthropic/v1/messages", list: "messages", tools: []object{{"name": "Bash"}, {"name": "Write"}},
			user:   func(s string) object { return object{"role": "user", "content": part("text", s)} },
			said:   func(s string) object { return object{"role": "assistant", "content": part("text", s)} },
			called: func() object { return object{"role": "assistant", "content": part("tool_use", "")} },
			result: func() object { return object{"role": "user", "content": part("tool_result", "")} },
			words:  func(o object) string { return text(get(o, "content", 0, "text")) },
			call: func(o object) (string, string) {
				return text(get(o, "content", 0, "name")), text(get(o, "content", 0, "input"))
			},
		},
		"responses": {
			path: "/openai/v1/responses", list: "input", tools: []object{{"name": "exec_command"}, {"name": "apply_patch"}},
			user:   func(s string) object { return object{"role": "user", "content": part("input_text", s)} },
			said:   func(s string) object { return object{"role": "assistant", "content": part("output_text", s)} },
			called: func() object { return object{"type": "function_call"} },
			result: func() object { return object{"type": "function_call_output"} },
			words:  func(o object) string { return text(get(o, "output", 0, "content", 0, "text")) },
			call: func(o object) (string, string) {
				return text(get(o, "output", 0, "name")), text(get(o, "output", 0, "arguments"))
			},
		},
		"chat": {
			path: "/v1/chat/completions", list: "messages",
			tools:  []object{{"function": object{"name": "bash"}}, {"function": object{"name": "write"}}},
			user:   func(s string) object { return object{"role": "user", "content": s} },
			said:   func(s string) object { return object{"role": "assistant", "content": s} },
			called: func() object { return object{"role": "assistant", "tool_calls": []object{{}}} },
			result: func() object { return object{"role": "tool"} },
			words:  func(o object) string { return text(get(o, "choices", 0, "message", "content")) },
			call: func(o object) (string, string) {
				f := get(o, "choices", 0, "message", "tool_calls", 0, "function")
				return text(get(f, "name")), text(get(f, "arguments"))
			},
		},
	}
}

func (a api) ask(t *testing.T, url string, conversation ...object) object {
	t.Helper()
	status, body, err := post(t, url+a.path, "", object{"model": "m", a.list: conversation, "tools": a.tools})
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	var o object
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAScriptGoesOnByWhatCameAfterIt(t *testing.T) {
	for name, a := range apis() {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, fakemodel.Options{})
			script := a.user("do " + fakemodel.Script(
				fakemodel.Step{Bash: "date"}, fakemodel.Say("one"), fakemodel.Say("two"),
			) + " now")
			if _, args := a.call(a.ask(t, url, script)); !strings.Contains(args, `"date"`) {
				t.Errorf("first step: %s", args)
			}
			talk := []object{a.user("earlier"), a.said("yes"), script, a.called(), a.result()}
			if got := a.words(a.ask(t, url, talk...)); got != "one" {
				t.Errorf("after the tool: %q", got)
			}
			if got := a.words(a.ask(t, url, append(talk, a.user("steer"))...)); got != "one" {
				t.Errorf("after a steer: %q", got)
			}
			talk = append(talk, a.said("one"), a.user("<note>\nfrom the agent\n</note>"))
			if got := a.words(a.ask(t, url, talk...)); got != "one" {
				t.Errorf("after a note of the agent: %q", got)
			}
			talk = append(talk, a.user("it does not fit the schema"))
			if got := a.words(a.ask(t, url, talk...)); got != "two" {
				t.Errorf("in the next turn: %q", got)
			}
			talk = append(talk, a.said("two"), a.user("and?"))
			if got := a.words(a.ask(t, url, talk...)); got != "(the script has ended)" {
				t.Errorf("behind the end: %q", got)
			}
			talk = append(talk, a.user(fakemodel.Script(fakemodel.Say("new"))))
			if got := a.words(a.ask(t, url, talk...)); got != "new" {
				t.Errorf("with another script: %q", got)
			}
		})
	}
}

func TestWithoutAScript(t *testing.T) {
	for name, a := range apis() {
		_, url := start(t, fakemodel.Options{})
		if got := a.words(a.ask(t, url, a.user("hello"))); got != "ok (no script)" {
			t.Errorf("%s: %q", name, got)
		}
		if got := a.words(a.ask(t, url, a.user(`<<script>>[{"txet":"x"}]<<end>>`))); !strings.Contains(got, "txet") {
			t.Errorf("%s: a bad script: %q", name, got)
		}
		escaped := strings.ReplaceAll(fakemodel.Script(fakemodel.Say("plain")), `"`, `\"`)
		if got := a.words(a.ask(t, url, a.user(escaped))); got != "plain" {
			t.Errorf("%s: an escaped script: %q", name, got)
		}
	}
}

func TestStepsUseTheToolsOfTheAgent(t *testing.T) {
	write := fakemodel.Step{Write: &fakemodel.Write{Path: "/p", Content: "a\nb"}}
	mcp := fakemodel.Step{Tool: "mcp__srv__run_it", Args: json.RawMessage(`{"x":1}`)}
	for _, c := range []struct {
		api        string
		step       fakemodel.Step
		name, args string
	}{
		{"anthropic", fakemodel.Step{Bash: "ls"}, "Bash", `"command":"ls"`},
		{"responses", fakemodel.Step{Bash: "ls"}, "exec_command", `"cmd":"ls"`},
		{"chat", fakemodel.Step{Bash: "ls"}, "bash", `"command":"ls"`},
		{"anthropic", write, "Write", `"file_path":"/p"`},
		{"chat", write, "write", `"filePath":"/p"`},
		{"anthropic", mcp, "mcp__srv__run_it", `{"x":1}`},
		{"responses", mcp, "run_it", `{"x":1}`},
		{"chat", mcp, "srv_run_it", `{"x":1}`},
		{"responses", fakemodel.Step{NS: "mcp__srv", Tool: "run_it"}, "run_it", `{}`},
		{"anthropic", fakemodel.Step{NS: "mcp__srv", Tool: "run_it"}, "mcp__srv__run_it", `{}`},
		{"anthropic", fakemodel.Step{Tool: "Glob"}, "Glob", `{}`},
		{"responses", fakemodel.Step{Read: "/it's"}, "exec_command", `cat '/it'\\''s'`},
	} {
		_, url := start(t, fakemodel.Options{})
		a := apis()[c.api]
		reply := a.ask(t, url, a.user(fakemodel.Script(c.step)))
		if name, args := a.call(reply); name != c.name || !strings.Contains(args, c.args) {
			t.Errorf("%s: %s %s, want %s %s", c.api, name, args, c.name, c.args)
		}
		if c.api == "responses" && strings.Contains(c.step.Tool, "run_it") && text(get(reply, "output", 0, "namespace")) != "mcp__srv" {
			t.Errorf("no namespace in %v", reply)
		}
	}
}

func TestPatchesForCodex(t *testing.T) {
	_, url := start(t, fakemodel.Options{})
	a := apis()["responses"]
	reply := a.ask(t, url, a.user(fakemodel.Script(fakemodel.Step{Edit: &fakemodel.Edit{Path: "p", Old: "x", New: "y\nz"}})))
	want := "*** Begin Patch\n*** Update File: p\n@@\n-x\n+y\n+z\n*** End Patch\n"
	if got := text(get(reply, "output", 0, "input")); got != want {
		t.Errorf("%q", got)
	}
}

// Codex has its newer models call its tools from a program.
func TestProgramsForCodex(t *testing.T) {
	_, url := start(t, fakemodel.Options{})
	a := apis()["responses"]
	tools := object{"type": "additional_tools", "tools": []object{{"name": "functions", "tools": []object{{"name": "exec"}}}}}
	for _, c := range []struct {
		step fakemodel.Step
		want string
	}{
		{fakemodel.Step{Bash: `echo "x"`}, `tools.exec_command({"cmd":"echo \"x\""`},
		{fakemodel.Step{Tool: "mcp__srv__run_it"}, "tools.mcp__srv__run_it({})"},
		{fakemodel.Step{NS: "mcp__srv", Tool: "run_it"}, "tools.mcp__srv__run_it({})"},
		{fakemodel.Step{Write: &fakemodel.Write{Path: "p", Content: "x"}}, `tools.apply_patch("*** Begin Patch\n*** Add File: p\n+x\n`},
	} {
		reply := a.ask(t, url, tools, a.user(fakemodel.Script(c.step)))
		if got := text(get(reply, "output", 0, "input")); !strings.Contains(got, c.want) || text(get(reply, "output", 0, "namespace")) != "functions" {
			t.Errorf("%v, want %s", reply, c.want)
		}
	}
}

func TestFailuresHappenAsOftenAsTheScriptSays(t *testing.T) {
	for name, a := range apis() {
		_, url := start(t, fakemodel.Options{})
		ask := func(steps ...fakemodel.Step) (int, error) {
			body := object{"model": "m", "stream": true, a.list: []object{a.user(fakemodel.Script(steps...))}}
			status, _, err := post(t, url+a.path, "", body)
			return status, err
		}
		twice := []fakemodel.Step{{Status: 529, Times: 2}, fakemodel.Say("x")}
		for i, want := range []int{529, 529, 200, 200} {
			if got, err := ask(twice...); got != want || err != nil {
				t.Errorf("%s: request %d: %d %v", name, i, got, err)
			}
		}
		for range 3 {
			if got, _ := ask(fakemodel.Step{Status: 403}, fakemodel.Say("x")); got != 403 {
				t.Errorf("%s: %d, want always 403", name, got)
			}
		}
		cut := []fakemodel.Step{{Cut: true, Times: 1}, fakemodel.Say("x")}
		if _, err := ask(cut...); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: a cut stream: %v", name, err)
		}
		if got, err := ask(cut...); got != 200 || err != nil {
			t.Errorf("%s: after the cut: %d %v", name, got, err)
		}
	}
}

func TestAFailureComesAfterTheStepsBeforeIt(t *testing.T) {
	_, url := start(t, fakemodel.Options{})
	a := apis()["chat"]
	script := a.user(fakemodel.Script(fakemodel.Step{Bash: "ls"}, fakemodel.Step{Status: 500}, fakemodel.Say("x")))
	a.ask(t, url, script)
	status, _, err := post(t, url+a.path, "", object{a.list: []object{script, a.called(), a.result()}})
	if err != nil || status != 500 {
		t.Fatalf("%d %v", status, err)
	}
}

// The words of a stream come in parts, and their usage at its end.
func TestStreams(t *testing.T) {
	words := "these are several words, so that there is something to cut into parts"
	for name, want := range map[string]string{
		"anthropic": "message_stop", "responses": "response.completed", "chat": "[DONE]",
	} {
		a := apis()[name]
		_, url := start(t, fakemodel.Options{})
		step := fakemodel.Say(words)
		step.Usage = &fakemodel.Usage{Input: 1234, Output: 77, CacheRead: 3}
		step.Think = "thought"
		status, body, err := post(t, url+a.path, "", object{
			"stream": true, "stream_options": object{"include_usage": true}, a.list: []object{a.user(fakemodel.Script(step))},
		})
		if err != nil || status != 200 || !strings.Contains(body, want) || !strings.Contains(body, "77") {
			t.Errorf("%s: %d %v\n%s", name, status, err, body)
		}
		if n := strings.Count(body, "\n\n"); n < 10 {
			t.Errorf("%s: %d events", name, n)
		}
		if whole := a.ask(t, url, a.user(fakemodel.Script(fakemodel.Say(words)))); a.words(whole) != words {
			t.Errorf("%s: without a stream: %v", name, whole)
		}
	}
}

func TestAStreamWaitsWhereTheScriptHoldsIt(t *testing.T) {
	m, url := start(t, fakemodel.Options{})
	a := apis()["anthropic"]
	b, _ := json.Marshal(object{"stream": true, a.list: []object{
		a.user(fakemodel.Script(fakemodel.Step{Hold: "gate"}, fakemodel.Say("first half second half"))),
	}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+a.path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := m.Held(t.Context(), "gate"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "text_delta") {
		continue
	}
	m.Release("gate")
	m.Release("gate")
	rest, err := io.ReadAll(resp.Body)
	if err != nil || lines.Err() != nil {
		t.Fatal(err, lines.Err())
	}
	_ = rest // the scanner may have read all of it
	if len(m.Requests()) != 1 {
		t.Errorf("%d requests", len(m.Requests()))
	}
}

func TestKeys(t *testing.T) {
	m, url := start(t, fakemodel.Options{AnthropicKey: "sk-a", OpenAIKey: "sk-o"})
	for _, c := range []struct {
		api, key string
		want     int
	}{
		{"anthropic", "sk-a", 200},
		{"anthropic", "sk-o", 401},
		{"anthropic", "", 401},
		{"responses", "sk-o", 200},
		{"chat", "sk-o", 200},
		{"chat", "sk-a", 401},
	} {
		a := apis()[c.api]
		if got, _, err := post(t, url+a.path, c.key, object{a.list: []object{a.user("x")}}); got != c.want || err != nil {
			t.Errorf("%s with %q: %d %v", c.api, c.key, got, err)
		}
	}
	if log := m.Requests(); log[0].Auth != "bearer" || log[2].Auth != "none" || log[0].Key != "sk-a" || log[3].Dialect != "responses" {
		t.Errorf("%+v", log)
	}
}

func TestOtherPaths(t *testing.T) {
	var log bytes.Buffer
	_, url := start(t, fakemodel.Options{Log: &log})
	for path, want := range map[string]int{
		"/v1/models": 200, "/anthropic/api/hello": 200, "/openai/v1/responses": 405, "/nowhere": 404,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	if status, body, err := post(t, url+"/v1/messages/count_tokens", "", object{}); status != 200 || !strings.Contains(body, "input_tokens") || err != nil {
		t.Errorf("%d %s %v", status, body, err)
	}
	if n := strings.Count(log.String(), "\n"); n != 5 {
		t.Errorf("%d lines: %s", n, &log)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	m, _ := start(t, fakemodel.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	err := m.Await(ctx, func([]fakemodel.Request) bool { return false })
	if err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}
