package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/testenv"
)

// collector is an OpenTelemetry Collector at work.
type collector struct {
	t    *testing.T
	dir  string
	url  string
	stop func()
}

// startCollector starts the collector that .ci/collector builds, which writes what it is
// sent into files.
func startCollector(t *testing.T) *collector {
	t.Helper()
	bin := os.Getenv("INSIGHTSCLI_TEST_COLLECTOR")
	testenv.Need(t, "an OpenTelemetry Collector: INSIGHTSCLI_TEST_COLLECTOR, of .ci/collector", bin != "")
	dir := t.TempDir()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close() // the collector's now
	config := fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %[1]q}}}}
exporters: {file/logs: {path: %[2]q}, file/traces: {path: %[3]q}}
service:
  pipelines:
    logs: {receivers: [otlp], exporters: [file/logs]}
    traces: {receivers: [otlp], exporters: [file/traces]}
`, addr, filepath.Join(dir, "logs"), filepath.Join(dir, "traces"))
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "--config", path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, dir: dir, url: "http://" + addr}
	ended := false
	c.stop = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("collector: %v: %s", err, &out)
		}
	}
	t.Cleanup(c.stop)
	c.wait()
	return c
}

// wait returns when the collector answers.
func (c *collector) wait() {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			return
		}
	}
	c.t.Fatal("the collector does not answer")
}

// request is one line of a file that the collector has written, decoded.
type request = map[string]any

// wrote are the lines of a file that the collector has written.
func (c *collector) wrote(name string) (lines []request, raw []byte) {
	c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		lines = append(lines, decoded(c.t, line))
	}
	return lines, raw
}

func decoded(t *testing.T, b []byte) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// scope takes a request apart: its one resource, its one scope and what is in it.
func scope(t *testing.T, r request, what, list string) (resource, by any, items []any) {
	t.Helper()
	resources, _ := r["resource"+what].([]any)
	if len(resources) != 1 {
		t.Fatalf("%d resources", len(resources))
	}
	one := resources[0].(map[string]any)
	scopes, _ := one["scope"+what].([]any)
	if len(scopes) != 1 {
		t.Fatalf("%d scopes", len(scopes))
	}
	in := scopes[0].(map[string]any)
	return one["resource"], in["scope"], in[list].([]any)
}

// same compares what a collector understood with what was meant, field by field.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var meant any
	if err := json.Unmarshal(b, &meant); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, meant) {
		g, _ := json.Marshal(got) // for people
		t.Errorf("%s:\n got %s\nwant %s", what, g, b)
	}
}

// A real collector understands every field of what it is sent, and nothing that it writes
// has a word of the run's content.
func TestCollectorUnderstandsARun(t *testing.T) {
	c := startCollector(t)
	o := options(t, c.url)
	o.Spec.Telemetry.Mirror = false
	r := begin(t, o)
	for _, ev := range aRun() {
		r.Emit(ev)
	}
	r.Close()
	if rep := r.Report(); rep.Left != 0 || rep.Dropped != 0 {
		t.Fatalf("%+v", rep)
	}
	c.stop()
	logs, spans := tell(aRun(), o.Spec)
	compare(t, c, "logs", "Logs", "logRecords", resourceOf(o.Spec), "agent-session", len(logs), func(i int) any { return logs[i] })
	compare(t, c, "traces", "Spans", "spans", resourceOf(o.Spec), "agent-session", len(spans), func(i int) any { return spans[i] })
	for _, name := range []string{"logs", "traces"} {
		if _, raw := c.wrote(name); strings.Contains(string(raw), "canary") {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// compare sees that the collector wrote those items of that resource and scope.
func compare(t *testing.T, c *collector, file, what, list string, resource []attribute, by string, n int, want func(i int) any) {
	t.Helper()
	lines, _ := c.wrote(file)
	at := 0
	for _, line := range lines {
		res, scopeOf, items := scope(t, line, what, list)
		same(t, "resource", res, map[string]any{"attributes": resource})
		if got := scopeOf.(map[string]any)["name"]; got != by {
			t.Errorf("scope %v", got)
		}
		for _, item := range items {
			if at < n {
				same(t, fmt.Sprintf("%s %d", file, at), item, want(at))
			}
			at++
		}
	}
	if at != n {
		t.Errorf("%d %s, want %d", at, file, n)
	}
}

// A real collector understands the log mirror.
func TestCollectorUnderstandsTheMirror(t *testing.T) {
	c := startCollector(t)
	o := options(t, c.url)
	o.LogsToken, o.Spec.Telemetry.LogsURL = secret.String{}, ""
	o.Spec.Telemetry.MirrorURL = c.url + "/v1/logs"
	r := begin(t, o)
	var want []json.RawMessage
	m := &mirror{}
	source := mirrorSource{o.Spec.Run, o.Spec.Task, o.Spec.Team, o.Spec.OriginProduct}
	for _, ev := range mirrorRun() {
		r.Emit(ev)
		for _, e := range m.event(ev) {
			want = append(want, source.record(e))
		}
	}
	r.Close()
	c.stop()
	service := []attribute{text("service.name", "task-run-log-mirror")}
	compare(t, c, "logs", "Logs", "logRecords", service, mirrorScope, len(want), func(i int) any { return want[i] })
}
