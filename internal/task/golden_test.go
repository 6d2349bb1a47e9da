package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// golden compares the indented JSON of v with a file of testdata; UPDATE_GOLDEN=1
// writes it instead.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs: recorded runs hold the older form, see SpecVersion. Got:\n%s", path, got)
	}
}

// fromGolden reads a file of testdata into v, as a later version reads what an
// earlier one recorded.
func fromGolden(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// unset names the fields of v, a struct, that are zero: those a golden says nothing
// about.
func unset(prefix string, v reflect.Value) []string {
	var names []string
	switch v.Kind() {
	case reflect.Slice:
		if v.Len() > 0 && v.Index(0).Kind() == reflect.Struct {
			return unset(prefix+"[0]", v.Index(0))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			break
		}
		for i := range v.NumField() {
			names = append(names, unset(prefix+"."+v.Type().Field(i).Name, v.Field(i))...)
		}
		return names
	}
	if v.IsZero() {
		names = append(names, prefix)
	}
	return names
}

// fullSpec has a value in every field.
func fullSpec() Spec {
	return Spec{
		V: 1, Task: "00000000-0000-4000-8000-000000000001", Run: "00000000-0000-4000-8000-000000000002", Team: 3, User: 4,
		Title: "title", Description: "prompt", OriginProduct: "user_created",
		Agent: Agent{
			Name: "exec", Command: []string{"echo", "a b"},
			Model: "model", Effort: "high", PermissionMode: "plan", Program: "/opt/claude",
		},
		Repos: []Repo{{
			Source: RepoLocal, Org: "org", Name: "repo", Path: "/src/repo", URL: "https://git.example/org/repo",
			Branch: "main", Commit: "0123abc", Mount: true, Uncommitted: true, FullHistory: true,
		}},
		Scopes: []string{"query:read", "task:write"}, CreatePR: true, Mode: ModeBackground,
		Environment: "env", Provider: "docker",
		Engine:   Engine{Host: "unix:///e.sock", Context: "ctx", ConfigDir: "/c", CertPath: "/p", TLSVerify: true},
		Template: "default_base", Image: "image:tag", Runtime: "runsc", Network: NetworkFull, Allow: []string{"example.com"}, CPUs: 1.5, MemoryMiB: 512,
		Timeout: Duration(3 * time.Hour), IdleTimeout: Duration(30 * time.Minute), HostGrace: Duration(2 * time.Minute),
		Env: map[string]string{"K": "v"}, Secrets: []string{"TOKEN"}, Schema: json.RawMessage(`{"type":"object"}`),
		LLM: LLM{
			AnthropicURL: "https://a.example", OpenAIURL: "https://o.example", ForwardURL: "https://f.example",
			MaxCost: 1.5, MaxTokens: 1000, Prices: "m=1,2",
		},
		MCP: MCP{
			URL: "http://localhost:8787/mcp", Require: []string{"insights"}, Approve: "delete",
			Servers: []MCPServer{{
				Name: "mine", URL: "https://m.example", Headers: map[string]string{"A": "${B}"},
				Command: []string{"server"}, Env: map[string]string{"K": "v"},
			}},
		},
		Skills: "abc", Session: true, TurnTime: Duration(30 * time.Minute),
		AgentUID: 1000, AgentGID: 1001, FollowCI: true, FollowIdle: Duration(15 * time.Minute), FollowPoll: Duration(time.Minute), Keep: true, PublishAgent: "127.0.0.1:0", TrustMount: true, ExitCode: true,
		ToolDirs: []string{"/opt/go"}, Detached: true,
		Telemetry: Telemetry{
			Enabled: true, LogsURL: "http://localhost:8000/i/v1/logs", TracesURL: "http://localhost:8000/i/v1/traces",
			Mirror: true, MirrorURL: "http://localhost:8000/i/v1/logs",
			OwnURL: "http://localhost:4318/v1/traces", OwnService: "insightscli",
			TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
	}
}

// TestSpecForm: a Spec is frozen in state.db and read by whichever version recovers the
// run. A renamed field would be empty there: a run without its repository, or one whose
// limits are gone.
func TestSpecForm(t *testing.T) {
	if SpecVersion != 1 {
		t.Error("a new version needs goldens of its own; those of the old one stay")
	}
	if names := unset("Spec", reflect.ValueOf(fullSpec())); names != nil {
		t.Errorf("give these a value in fullSpec: %v", names)
	}
	golden(t, "spec.json", fullSpec())
	golden(t, "spec_empty.json", Spec{})
	var full, empty Spec
	fromGolden(t, "spec.json", &full)
	full.Schema = compact(t, full.Schema)
	fromGolden(t, "spec_empty.json", &empty)
	if !reflect.DeepEqual(full, fullSpec()) || !reflect.DeepEqual(empty, Spec{}) {
		t.Errorf("read back: %+v and %+v", full, empty)
	}
}

func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fullResult() Result {
	code := 0
	return Result{
		Run: "r", Task: "t", State: StateCompleted, Code: 7, ExitCode: &code, Signal: "SIGKILL",
		Kind: "task_failed", Error: "error", Hint: "hint", Cleanup: "cleanup", Provider: "local", Sandbox: "box",
		Started: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Finished: time.Date(2026, 11, 29, 12, 0, 1, 5000, time.UTC),
		IdleEnd: true, WallClockEnd: true,
		Turn: &Turn{
			Number: 1, MessageID: "m", OK: true, Text: "text", Value: json.RawMessage(`{}`), Attempts: 2,
			Degraded: true, Category: TurnInvalid, Error: "error",
		},
		Usage: &Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Thought: 5, Total: 10, Requests: 6, CostUSD: 0.5, Unpriced: 7},
		Repos: []RepoResult{{
			Org: "org", Name: "repo", Base: "0123", Commit: "4567", Ref: "refs/insights/r",
			Files: 1, Insertions: 2, Deletions: 3, Error: "error",
		}},
		Published: []Published{{Org: "org", Name: "repo", Branch: "fix", SHA: "0123", URL: "https://github.com/org/repo/pull/1", Pull: 1}},
		Denied:    []Denied{{Host: "evil.example", Port: 443, Count: 2, Reason: "not allowed", Rule: "evil.example"}},
	}
}

// TestResultForm: the last line of --json is what programs read of a run, and its
// exit_code is there also when it is 0.
func TestResultForm(t *testing.T) {
	if names := unset("Result", reflect.ValueOf(fullResult())); names != nil {
		t.Errorf("give these a value in fullResult: %v", names)
	}
	golden(t, "result.json", fullResult())
	golden(t, "result_empty.json", Result{})
	var got Result
	fromGolden(t, "result.json", &got)
	if !reflect.DeepEqual(got, fullResult()) {
		t.Errorf("read back: %+v", got)
	}
}

// TestEventPayloadForms: the payloads of docs/events.md.
func TestEventPayloadForms(t *testing.T) {
	code := 0
	for _, tt := range []struct {
		payload any
		want    string
	}{
		{Step{Step: "clone", Status: StepFailed, Label: "l", Group: "g"}, `{"step":"clone","status":"failed","label":"l","group":"g"}`},
		{Step{Step: "clone", Status: StepInProgress, Detail: "d"}, `{"step":"clone","status":"in_progress","label":"","group":"","detail":"d"}`},
		{Notice{Level: "info", Message: "m"}, `{"level":"info","message":"m"}`},
		{Output{ExitCode: &code}, `{"exitCode":0}`},
		{Output{Stdout: "o", Lines: 1}, `{"stdout":"o","lines":1}`},
		{Output{Stderr: "/w==", Encoding: "base64", Continued: true}, `{"stderr":"/w==","encoding":"base64","continued":true}`},
	} {
		if b, err := json.Marshal(tt.payload); err != nil || string(b) != tt.want {
			t.Errorf("got %s, want %s (%v)", b, tt.want, err)
		}
	}
}

// TestOutputAgreesWithItsType: the hot path writes JSON by hand; the type is what
// readers use.
func TestOutputAgreesWithItsType(t *testing.T) {
	for _, data := range []string{"a\n", "", "\x7f\u2028<&>", "é\x00"} {
		var o Output
		b := AppendOutput(nil, Stderr, []byte(data), false)
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil || o.Stderr != data || o.Stdout != "" {
			t.Errorf("%s: %+v, %v", b, o, err)
		}
	}
}

// TestDamagedOutputIsAnError: a log line that was edited or cut must not be shown as
// if it were output.
func TestDamagedOutputIsAnError(t *testing.T) {
	if _, err := (Event{Seq: 5, Params: []byte(`{"stdout":7}`)}).Output(); err == nil {
		t.Error("a number is taken for output")
	}
	for _, o := range []Output{{Stdout: "%%", Encoding: "base64"}, {Stderr: "a", Encoding: "base64"}} {
		if _, b, err := o.Bytes(); err == nil || b != nil {
			t.Errorf("%+v gives %q", o, b)
		}
	}
}

// TestNewerLines: a log of a newer version is followed by an older one as far as it
// goes; its events keep their numbers, or the reader would see a gap and stop.
func TestNewerLines(t *testing.T) {
	const form = `{"type":"notification","v":%d,"seq":%d,"later":[{"a":1}],"timestamp":"2026-11-29T12:14:15.123456789+01:00",` +
		`"notification":{"jsonrpc":"2.0","method":"_insights/%s","params":{"new":true},"meta":{}}}` + "\n"
	for i, tt := range []struct {
		word string
		kind Kind
	}{{"console", KindNotice}, {"sandbox_output", KindOutput}, {"run_paused", "run_paused"}, {"output", "rpc:_insights/output"}} {
		ev, err := ParseLine(fmt.Appendf(nil, form, LineVersion+1, i+1, tt.word))
		if err != nil || ev.Seq != uint64(i+1) || ev.Kind != tt.kind || string(ev.Params) != `{"new":true}` || ev.At.IsZero() {
			t.Errorf("%s: %+v, %v", tt.word, ev, err)
		}
	}
}

// TestTerminalStates: a state that is taken for terminal by mistake lets `prune` and
// the recovery remove a live run's sandbox.
func TestTerminalStates(t *testing.T) {
	for state, want := range map[State]bool{
		StateQueued: false, StateInProgress: false, StateCompleted: true, StateFailed: true, StateCancelled: true, "": false, "later": false,
	} {
		if state.Terminal() != want {
			t.Errorf("%q: %v", state, !want)
		}
	}
}

func TestWorkDir(t *testing.T) {
	s := Spec{}
	if s.WorkDir() != "/tmp/workspace" {
		t.Errorf("without a repository: %s", s.WorkDir())
	}
	s.Repos = []Repo{{Org: "a", Name: "b"}, {Org: "c", Name: "d"}}
	if s.WorkDir() != "/tmp/workspace/repos/a/b" {
		t.Errorf("with two: %s", s.WorkDir())
	}
}

// TestTeeKeepsTheOrder: the journal is first, so that nothing is on a screen that a
// crash could lose.
func TestTeeKeepsTheOrder(t *testing.T) {
	var got []string
	name := func(n string) Sink {
		return SinkFunc(func(ev Event) { got = append(got, fmt.Sprint(n, ev.Seq)) })
	}
	tee := Tee(name("journal"), name("screen"))
	tee.Emit(Event{Seq: 1})
	tee.Emit(Event{Seq: 2})
	if want := []string{"journal1", "screen1", "journal2", "screen2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
