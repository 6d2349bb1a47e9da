package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestOwnTools(t *testing.T) {
	r := &run{}
	cfg := config(r)
	cfg.Tools = []Tool{{
		Name: "extra", Description: "More.", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true,
		Call: func(context.Context, json.RawMessage) (string, error) { return "more", nil },
	}}
	cfg.Fetch = func(_ context.Context, path string) (io.ReadCloser, error) {
		switch path {
		case "/tmp/workspace/out/report.md":
			return io.NopCloser(strings.NewReader("# Report")), nil
		case "/big":
			return io.NopCloser(io.LimitReader(zeros{}, maxArtifact+1)), nil
		}
		return nil, errors.New("no such file")
	}
	cs := agent(t, connected(t, cfg), Own, nil)
	if got := names(t, cs); !slices.Equal(got, []string{"extra", "finish", "report_progress", "upload_artifact"}) {
		t.Errorf("%v", got)
	}
	for _, tt := range []struct {
		tool string
		args map[string]any
		bad  bool
		want string // in the answer
	}{
		{"extra", nil, false, "more"},
		{"report_progress", map[string]any{"message": " Reading ", "step": "read"}, false, "Recorded"},
		{"report_progress", map[string]any{"message": " "}, true, "message is empty"},
		{"report_progress", map[string]any{"message": "x", "more": 1}, true, "unknown field"},
		{"report_progress", map[string]any{"message": 1}, true, "do not fit"},
		{"upload_artifact", map[string]any{"name": "../../etc/passwd", "content": "hi"}, false, "is kept as passwd"},
		{"upload_artifact", map[string]any{"name": "r.md", "path": "out/report.md", "media_type": "text/markdown"}, false, "is kept as r.md"},
		{"upload_artifact", map[string]any{"name": "b.bin", "content": "AAE=", "encoding": "base64"}, false, "is kept as b.bin"},
		{"upload_artifact", map[string]any{"name": "b.bin", "content": "!", "encoding": "base64"}, true, "not base64"},
		{"upload_artifact", map[string]any{"name": "b.bin", "content": "x", "encoding": "rot13"}, true, "must be text or base64"},
		{"upload_artifact", map[string]any{"name": "a"}, true, "exactly one"},
		{"upload_artifact", map[string]any{"name": "a", "path": "p", "content": "c"}, true, "exactly one"},
		{"upload_artifact", map[string]any{"name": "..", "content": "c"}, true, "no file name"},
		{"upload_artifact", map[string]any{"name": "a", "content": "c", "media_type": "x\r\ny: z"}, true, "type/subtype"},
		{"upload_artifact", map[string]any{"name": "a", "path": "absent"}, true, "no such file"},
		{"upload_artifact", map[string]any{"name": "a", "path": "/big"}, true, "larger than 50 MiB"},
		{"upload_artifact", map[string]any{"name": "a", "content": strings.Repeat("x", maxContent+1)}, true, "larger than 4 MiB"},
		{"upload_artifact", map[string]any{"name": "full.disk", "content": "c"}, true, "could not be stored on the host"},
		{"finish", map[string]any{"status": "done"}, true, "completed or failed"},
		{"finish", map[string]any{"status": "failed", "summary": "no key"}, false, "Recorded"},
	} {
		text, bad := use(t, cs, tt.tool, tt.args)
		if bad != tt.bad || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q (error %v), want %q (error %v)", tt.tool, text, bad, tt.want, tt.bad)
		}
	}
	want := map[string]string{
		"passwd": "text/plain; charset=utf-8|hi", "r.md": "text/markdown|# Report", "b.bin": "application/octet-stream|\x00\x01",
	}
	if !reflect.DeepEqual(r.artifacts, want) {
		t.Errorf("%q", r.artifacts)
	}
	if !slices.Equal(r.notices, []string{"warn: the artifact full.disk was not kept: write /secret/place: no space"}) {
		t.Errorf("%q", r.notices)
	}
	if !slices.Equal(r.progress, []string{"read:Reading"}) || !slices.Equal(r.finished, []string{"failed:no key"}) {
		t.Errorf("%q, %q", r.progress, r.finished)
	}
}

// A run cannot fill the disk of its host.
func TestArtifactsOfARunAreBounded(t *testing.T) {
	h := connected(t, config(&run{}))
	args := json.RawMessage(`{"name":"a","content":"c"}`)
	for range maxFiles {
		if _, err := h.uploadArtifact(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.uploadArtifact(t.Context(), args); err == nil {
		t.Error("one more was kept")
	}
	h = connected(t, config(&run{}))
	h.kept = maxArtifacts - 1
	if _, err := h.uploadArtifact(t.Context(), json.RawMessage(`{"name":"a","content":"cc"}`)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more bytes than may be kept: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestArtifactNames(t *testing.T) {
	for in, want := range map[string]string{
		"report.md": "report.md", "a/b/c.txt": "c.txt", `C:\x\y.txt`: "y.txt", "../..": "", "..": "", ".env": "env", "": "", "a b\nc": "a-b-c",
		"näme.txt": "n-me.txt", "-rf": "rf", "con": "_con", "LPT1.txt": "_LPT1.txt", "a...": "a", "x/": "",
		strings.Repeat("a", 300) + ".json": strings.Repeat("a", maxName-5) + ".json",
	} {
		if got := artifactName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDispatchedTools(t *testing.T) {
	approve, err := CompileApproval(defaultApproval)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]bool{
		`{"command":"call feature-flag-delete {\"id\":1}"}`:                       true,
		`{"command":"  CALL  Feature_Flag_Delete{}"}`:                             true,
		`{"command":"call --json feature-flag-delete {}"}`:                        true,
		`{"command":"call \"feature-flag-delete\" {}"}`:                           true,
		`{"command":"info x\ncall feature-flag-delete {}"}`:                       true,
		`{"command":"call flag-list {} ; call flag-delete {}"}`:                   true,
		`{"command":"call {bad flag-delete"}`:                                     true,
		`{"tool":"flag-delete","arguments":{}}`:                                   true,
		`{"name":"flag-delete"}`:                                                  true,
		`{"whatever":"flag-delete"}`:                                              true,
		`{"calls":[{"tool":"flag-list"},{"tool":"flag-delete"}]}`:                 true,
		`{"argv":["call","flag-delete","{}"]}`:                                    true,
		`{"request":{"name":"flag-delete"}}`:                                      true,
		`"call flag-delete {}"`:                                                   true,
		`{"command":"call flag-list {\"name\":\"please-delete\"}"}`:               false,
		`{"command":"info flag-delete"}`:                                          false,
		`{"command":"search delete"}`:                                             false,
		`{"tool":"flag-list","arguments":{"name":"flag-delete"}}`:                 false,
		`{"command":"call execute-sql {\"query\":\"select 'delete' from a\"}"}`:   false,
		`{"command":"call flag-list {}","why":"to see whether we can delete it"}`: false,
	} {
		got := slices.ContainsFunc(dispatched(json.RawMessage(args)), func(n string) bool { return approve.MatchString(kebab(n)) })
		if got != want {
			t.Errorf("%s: %v (%q)", args, got, dispatched(json.RawMessage(args)))
		}
	}
	for name, want := range map[string]bool{"insights": true, "insights_eu": true, "insights-eu": false, "other": false} {
		if dispatches(name, "exec") != want || dispatches(name, "execute") {
			t.Errorf("%s", name)
		}
	}
}

func TestReportsOfARunAreBounded(t *testing.T) {
	r := &run{}
	h := connected(t, config(r))
	h.reports.Store(maxReports - 1)
	cs := agent(t, h, Own, nil)
	for _, bad := range []bool{false, true} {
		if got, isErr := use(t, cs, "report_progress", map[string]any{"message": "again"}); isErr != bad {
			t.Errorf("%v: %s", bad, got)
		}
	}
	if len(r.progress) != 1 {
		t.Errorf("%v", r.progress)
	}
}

// TestBodiesAreBoundedTogether: a request waits while others hold as much of our memory
// as those of one run may, and what it held itself is given back.
func TestBodiesAreBoundedTogether(t *testing.T) {
	r := &run{}
	h := connected(t, config(r))
	cs := agent(t, h, Own, nil)
	if !h.bodies.TryAcquire(maxBodies) {
		t.Fatal("something is held")
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		use(t, cs, "report_progress", map[string]any{"message": "hello"})
	}()
	for len(h.slots) == 0 { // it has come
		runtime.Gosched()
	}
	select {
	case <-answered:
		t.Error("it has not waited")
	default:
	}
	h.bodies.Release(maxBodies)
	<-answered
	for len(h.slots) > 0 {
		runtime.Gosched()
	}
	if len(r.progress) != 1 || !h.bodies.TryAcquire(maxBodies) {
		t.Errorf("progress %v, or something is held", r.progress)
	}
}
