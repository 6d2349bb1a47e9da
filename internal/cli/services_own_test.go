package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

const (
	ownPlace  = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
	ownParent = "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ownHeader = "OTEL_EXPORTER_OTLP_HEADERS=a=b"
)

// Traces of insightscli itself are asked for by the environment alone, by the variables of
// OpenTelemetry, whatever the team's flag says.
func TestOwnTracesAreFrozen(t *testing.T) {
	const place = "http://localhost:4318/v1/traces"
	parent := strings.TrimPrefix(ownParent, "TRACEPARENT=")
	for name, tt := range map[string]struct {
		environ []string
		want    task.Telemetry
		headers string
	}{
		"unset":       {[]string{ownParent, ownHeader, "OTEL_SERVICE_NAME=x"}, task.Telemetry{}, ""},
		"place":       {[]string{ownPlace}, task.Telemetry{OwnURL: place, OwnService: "insightscli"}, ""},
		"production":  {[]string{ownPlace, "DEBUG=0", "SANDBOX_PROVIDER=local"}, task.Telemetry{OwnURL: place, OwnService: "insightscli"}, ""},
		"all":         {[]string{ownPlace, ownParent, ownHeader, "OTEL_SERVICE_NAME=x"}, task.Telemetry{OwnURL: place, OwnService: "x", TraceParent: parent}, "a=b"},
		"traces":      {[]string{ownPlace, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://h/t"}, task.Telemetry{OwnURL: "http://h/t", OwnService: "insightscli"}, ""},
		"headers":     {[]string{ownPlace, ownHeader, "OTEL_EXPORTER_OTLP_TRACES_HEADERS=c=d"}, task.Telemetry{OwnURL: place, OwnService: "insightscli"}, "c=d"},
		"not sampled": {[]string{ownPlace, strings.TrimSuffix(ownParent, "1") + "0"}, task.Telemetry{}, ""},
		"no parent":   {[]string{ownPlace, "TRACEPARENT=nonsense"}, task.Telemetry{OwnURL: place, OwnService: "insightscli"}, ""},
		"disabled":    {[]string{ownPlace, ownHeader, "OTEL_SDK_DISABLED=true"}, task.Telemetry{}, ""},
		"not off":     {[]string{ownPlace, "OTEL_SDK_DISABLED=false"}, task.Telemetry{OwnURL: place, OwnService: "insightscli"}, ""},
		"no URL":      {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317", ownHeader}, task.Telemetry{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec, values := frozen(t, tt.environ, false, "run", "--", "true")
			if spec.Telemetry != tt.want {
				t.Errorf("%+v", spec.Telemetry)
			}
			if got := values[secretOwn].Reveal(); got != tt.headers {
				t.Errorf("headers %q", got)
			}
		})
	}
}

// A file of a project does not decide where they go; and nobody is shown a password.
func TestOwnTracesAreTheEnvironments(t *testing.T) {
	for _, tt := range []struct {
		env     string
		environ []string
		told    bool
		notices int
	}{
		{ownPlace + "\n" + ownHeader + "\n" + ownParent + "\n", nil, false, 0},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://evil.example\nOTEL_SDK_DISABLED=1\n", []string{ownPlace}, true, 0},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://ann:canary@h"}, true, 0},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=ann:canary@h"}, false, 1},
	} {
		streams, _, stdout, _ := term.Test()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(tt.env), 0o600); err != nil {
			t.Fatal(err)
		}
		a := newApp(Process{Streams: streams, Dir: dir, Environ: tt.environ, Args: []string{"config"}})
		c, err := a.config(nil)
		if err != nil {
			t.Fatal(err)
		}
		o, p := &runOptions{app: a}, plan{config: c, secrets: map[string]secret.String{}}
		if err := o.freezeOwnTraces(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		spec, _ := json.Marshal(shownSpec(p.spec)) // plain structs always marshal
		a.main(t.Context())
		if all := string(spec) + strings.Join(p.notices, "") + stdout.String(); strings.Contains(all, "canary") || strings.Contains(all, "evil") {
			t.Errorf("%q: %s", tt.env, all)
		}
		if (p.spec.Telemetry.OwnURL != "") != tt.told || len(p.notices) != tt.notices || len(p.secrets) != 0 {
			t.Errorf("%q, %q: %+v, %q", tt.env, tt.environ, p.spec.Telemetry, p.notices)
		}
	}
}

// A run of the real program gives one trace, also when its process is killed, and goes as
// ever where nobody listens.
func TestARunIsTraced(t *testing.T) {
	bin := needSandbox(t)
	for _, at := range []string{"", "output", "down"} {
		t.Run("at "+at, func(t *testing.T) {
			t.Parallel()
			server := newTaken(t)
			if at == "down" {
				server.Close()
			}
			c := &crashed{t: t, bin: bin, state: stateDir(t)}
			cmd := c.command("run", "--json", "--provider", "local", "--title", "canary", "--", "sh", "-c", "echo canary; sleep 0.3")
			cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, ownHeader, ownParent)
			ended(t, cmd, strings.TrimPrefix(at, "down"))
			if res := c.ended(); res.State != task.StateCompleted {
				t.Errorf("result %+v", res)
			}
			c.nothingLeft()
			if at != "down" {
				wantTraced(t, server)
			}
		})
	}
}

// wantTraced sees that one trace came, with each span once, and no word of the run.
func wantTraced(t *testing.T, server *taken) {
	t.Helper()
	n := server.counted(t)
	for _, name := range []string{"insightscli run", "context", "token", "sandbox", "agent", "follow", "cleanup"} {
		if n["span "+name] != 1 {
			t.Errorf("%s came %d times: %v", name, n["span "+name], n)
		}
	}
	for _, body := range server.bodies {
		if strings.Contains(body, "canary") || !strings.Contains(body, "0af7651916cd43dd8448eb211c80319c") || len(n) != 7 {
			t.Errorf("%v, %s", n, body)
		}
	}
}
