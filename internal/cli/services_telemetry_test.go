package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

const (
	logsURL   = "SANDBOX_AGENT_OTEL_LOGS_URL=http://localhost:8000/i/v1/logs"
	logsToken = "SANDBOX_AGENT_OTEL_LOGS_TOKEN=token-0123456789"
	tracesURL = "SANDBOX_AGENT_OTEL_TRACES_URL=http://localhost:8000/i/v1/traces"
	mirrorURL = "TASK_RUN_LOGS_MIRROR_OTLP_URL=http://localhost:8000/i/v1/logs"
	mirrorKey = "TASK_RUN_LOGS_MIRROR_OTLP_TOKEN=token-9876543210"
	origins   = "TASK_RUN_LOGS_MIRROR_ORIGIN_PRODUCTS="
)

// What is told about a run is decided when it is frozen: by the settings on a developer's
// machine, elsewhere by the team's flag too.
func TestTelemetryIsFrozen(t *testing.T) {
	const logs, traces = "http://localhost:8000/i/v1/logs", "http://localhost:8000/i/v1/traces"
	production := []string{"DEBUG=0", "SANDBOX_PROVIDER=local"}
	for name, tt := range map[string]struct {
		environ []string
		origin  string
		flag    bool
		want    task.Telemetry
	}{
		"nothing":        {nil, "user_created", true, task.Telemetry{}},
		"logs":           {[]string{logsURL, logsToken}, "user_created", false, task.Telemetry{Enabled: true, LogsURL: logs}},
		"traces":         {[]string{logsURL, logsToken, tracesURL}, "user_created", false, task.Telemetry{Enabled: true, LogsURL: logs, TracesURL: traces}},
		"no token":       {[]string{logsURL, tracesURL}, "user_created", false, task.Telemetry{}},
		"no place":       {[]string{logsToken, tracesURL}, "user_created", false, task.Telemetry{}},
		"no flag":        {append(production, logsURL, logsToken), "user_created", false, task.Telemetry{}},
		"flag":           {append(production, logsURL, logsToken), "user_created", true, task.Telemetry{Enabled: true, LogsURL: logs}},
		"scout":          {nil, "signals_scout", false, task.Telemetry{Enabled: true, Mirror: true}},
		"scout, no flag": {production, "signals_scout", false, task.Telemetry{}},
		"scout, flag":    {production, "signals_scout", true, task.Telemetry{Enabled: true, Mirror: true}},
		"scout, none":    {[]string{origins}, "signals_scout", false, task.Telemetry{}},
		"mirror":         {[]string{mirrorURL, mirrorKey}, "signals_scout", false, task.Telemetry{Enabled: true, Mirror: true, MirrorURL: logs}},
		"mirror, no key": {[]string{mirrorURL}, "signals_scout", false, task.Telemetry{Enabled: true, Mirror: true}},
		"not mirrored":   {[]string{mirrorURL, mirrorKey}, "user_created", false, task.Telemetry{}},
		"all mirrored":   {[]string{origins + "loop, user_created"}, "user_created", false, task.Telemetry{Enabled: true, Mirror: true}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, values := frozen(t, tt.environ, tt.flag, "run", "--origin-product", tt.origin, "--", "true")
			if spec.Telemetry != tt.want {
				t.Errorf("%+v", spec.Telemetry)
			}
			_, logs := values[secretTelemetry]
			_, mirror := values[secretMirror]
			if logs != (tt.want.LogsURL != "") || mirror != (tt.want.MirrorURL != "") {
				t.Errorf("sealed: %v, %v", logs, mirror)
			}
		})
	}
}

// frozen is the Spec that a command line makes in an environment, where the team has the
// flag or not.
func frozen(t *testing.T, environ []string, flag bool, args ...string) (spec task.Spec, values map[string]secret.String) {
	t.Helper()
	streams, _, _, stderr := term.Test()
	dir := t.TempDir()
	a := fakeApp(Process{Streams: streams, Args: args, Dir: dir, Environ: append(environ, "INSIGHTSCLI_STATE_DIR="+dir+"/state")},
		func(_ context.Context, s task.Spec, v map[string]secret.String, sink task.Sink) (task.Result, error) {
			spec, values = s, v
			return finished(task.Result{Run: s.Run, State: task.StateCompleted}, sink)
		})
	c, err := a.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.openState(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	if err := platform.NewFlags(s.db.DB).Set(t.Context(), seedTeam, flagTelemetry, platform.Flag{Enabled: flag}); err != nil {
		t.Fatal(err)
	}
	if code := a.main(t.Context()); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	return spec, values
}

// taken is a receiver that counts what it is sent.
type taken struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	tokens map[string]bool
}

func newTaken(t *testing.T) *taken {
	t.Helper()
	r := &taken{tokens: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, string(b))
		r.tokens[req.Header.Get("Authorization")] = true
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(r.Close)
	return r
}

// counted are the spans and the types of log that came, with how often each did.
func (r *taken) counted(t *testing.T) map[string]int {
	t.Helper()
	type scope struct {
		Spans []struct{ Name, TraceID, SpanID string }
		Logs  []struct {
			Attributes []struct{ Value struct{ StringValue string } }
		} `json:"logRecords"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for _, body := range r.bodies {
		var req struct {
			Logs  []struct{ ScopeLogs []scope }  `json:"resourceLogs"`
			Spans []struct{ ScopeSpans []scope } `json:"resourceSpans"`
		}
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			t.Fatal(err)
		}
		for _, s := range req.Spans {
			for _, span := range s.ScopeSpans[0].Spans {
				n["span "+span.Name]++
			}
		}
		for _, l := range req.Logs {
			for _, log := range l.ScopeLogs[0].Logs {
				var words []string
				for _, a := range log.Attributes {
					words = append(words, a.Value.StringValue)
				}
				n[strings.Join(words, " ")]++
			}
		}
	}
	return n
}

// A run is told of, once, also when its process is killed; not a word of its command is.
func TestARunIsToldOfAcrossAKill(t *testing.T) {
	bin := needSandbox(t)
	for _, at := range []string{"", "sandbox in_progress", "output", "cleanup in_progress"} {
		t.Run("killed at "+at, func(t *testing.T) {
			t.Parallel()
			server := newTaken(t)
			c := &crashed{t: t, bin: bin, state: stateDir(t)}
			cmd := c.command("run", "--json", "--provider", "local", "--env-var", "X=canary", "--", "sh", "-c", "echo canary; sleep 0.3; echo canary")
			cmd.Env = append(cmd.Env, "SANDBOX_AGENT_OTEL_LOGS_URL="+server.URL+"/logs", logsToken, "SANDBOX_AGENT_OTEL_TRACES_URL="+server.URL+"/traces")
			ended(t, cmd, at)
			if res := c.ended(); res.State != task.StateCompleted {
				t.Errorf("result %+v", res)
			}
			c.nothingLeft() // the background runner too has ended, and told
			wantTold(t, server, at)
		})
	}
}

// ended carries a run out, and kills its process when an event comes; empty: never.
func ended(t *testing.T, cmd *exec.Cmd, at string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if events := bufio.NewReader(out); at == "" {
		_, _ = io.Copy(io.Discard, events)
	} else if !killWhen(cmd, events, at) {
		t.Fatalf("%s never came", at)
	}
	_ = cmd.Wait() // killed, or well
}

func wantTold(t *testing.T, server *taken, at string) {
	t.Helper()
	n := server.counted(t)
	for _, once := range []string{"span task_run", "run_started", "progress context completed setup", "progress cleanup completed setup", "task_complete completed"} {
		if n[once] != 1 {
			t.Errorf("%s: %q came %d times: %v", at, once, n[once], n)
		}
	}
	if n["span turn"] != 0 || len(server.tokens) != 1 || !server.tokens["Bearer token-0123456789"] {
		t.Errorf("%v, %v", n, server.tokens)
	}
	for _, body := range server.bodies {
		if strings.Contains(body, "canary") {
			t.Error(body)
		}
	}
}

// What the mirror writes as lines is in the background runner's own log, and on no stream of
// a command.
func TestMirrorLinesAreTheBackgroundRunners(t *testing.T) {
	bin := needSandbox(t)
	c := &crashed{t: t, bin: bin, state: stateDir(t)}
	cmd := c.command("run", "--json", "--provider", "local", "--origin-product", "signals_scout", "--", "echo", "from here")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || strings.Contains(out.String(), "task_run_log") {
		t.Errorf("%v: %s", err, &out)
	}
	_ = c.command("run", "-d", "--provider", "local", "--origin-product", "signals_scout", "--", "echo", "from the background").Run() // exits 8: running
	c.ended()
	c.nothingLeft()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(c.background(), "from the background") && time.Now().Before(deadline); {
		c.run("ps")
	}
	got := c.background()
	if strings.Contains(got, "from here") || !strings.Contains(got, `{"event":"task_run_log","level":"info","request_id":"`) ||
		!strings.Contains(got, `"body":"[sandbox_output] from the background\n"`) {
		t.Errorf("the background runner's log: %s", got)
	}
}

// A file of a project that names a place for what is told does not get the user's own token.
func TestForeignPlacesGetNoToken(t *testing.T) {
	for _, tt := range []struct {
		env     string
		environ []string
		want    []string
		told    bool
	}{
		{"SANDBOX_AGENT_OTEL_LOGS_URL=https://evil.example/v1\n", []string{logsToken}, []string{".env:1: SANDBOX_AGENT_OTEL_LOGS_URL sends", ".env:1: SANDBOX_AGENT_OTEL_LOGS_URL is not used"}, false},
		{"SANDBOX_AGENT_OTEL_LOGS_URL=https://o.example/v1\n" + logsToken + "\n", nil, []string{".env:1: SANDBOX_AGENT_OTEL_LOGS_URL sends"}, true},
		{logsURL + "\n" + logsToken + "\n", nil, nil, true},
		{"", []string{logsURL, logsToken}, nil, true},
	} {
		p := projectPlan(t, tt.env, tt.environ)
		if (p.spec.Telemetry.LogsURL != "") != tt.told || (len(p.secrets) > 0) != tt.told {
			t.Errorf("%q: %+v", tt.env, p.spec.Telemetry)
		}
		if len(p.notices) != len(tt.want) {
			t.Errorf("%q: %q", tt.env, p.notices)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(p.notices[i], want) {
				t.Errorf("%q: %q", tt.env, p.notices[i])
			}
		}
	}
}

// projectPlan is what is decided about telemetry in a directory with a .env file.
func projectPlan(t *testing.T, env string, environ []string) plan {
	t.Helper()
	streams, _, _, _ := term.Test()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newApp(Process{Streams: streams, Dir: dir, Environ: environ})
	c, err := a.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := plan{config: c, secrets: map[string]secret.String{}, notices: foundInProject(c, dir)}
	if err := (&runOptions{app: a}).freezeTelemetry(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	return p
}
