package doctor

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/testenv"
)

// well is a machine on which everything works, with the given settings.
func well(t *testing.T, environ ...string) Machine {
	t.Helper()
	dir := t.TempDir()
	c, err := config.Load(config.LoadOptions{Environ: append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, environ...), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return Machine{
		Config: c, EnvFile: filepath.Join(dir, ".env"), Project: dir, State: filepath.Join(dir, "no", "state"),
		Lookup: func(name string) string {
			for _, kv := range environ {
				if v, ok := strings.CutPrefix(kv, name+"="); ok {
					return v
				}
			}
			return ""
		},
		Stores:      func(context.Context) error { return nil },
		FlagOff:     func(context.Context) ([]int64, error) { return nil, nil },
		App:         func(context.Context, string) error { return nil },
		Runner:      func(context.Context) (string, error) { return "none", nil },
		Built:       func(string) error { return nil },
		Engine:      func(context.Context) (string, error) { return "unix:///docker.sock", nil },
		Image:       func(context.Context) (string, error) { return "fresh", nil },
		Local:       func(context.Context) error { return nil },
		AgentServer: func(context.Context) error { return nil },
		Holder:      func(string) string { return "python3 (12)" },
	}
}

// look gives the report of one check.
func look(t *testing.T, m Machine, code string) Report {
	t.Helper()
	for _, c := range Checks(m) {
		if c.Code == code {
			return c.report(c.Look(t.Context()))
		}
	}
	t.Fatalf("there is no check %q", code)
	return Report{}
}

func TestChecksOfSettings(t *testing.T) {
	const away = "http://127.0.0.1:1"
	for name, tt := range map[string]struct {
		code    string
		environ []string
		state   State
		text    string
	}{
		"DEBUG is off":            {"debug", []string{"DEBUG=0"}, Problem, "DEBUG is off (environment)"},
		"DEBUG in tests":          {"debug", []string{"DEBUG=0", "TEST=1"}, OK, ""},
		"DEBUG and a provider":    {"debug", []string{"SANDBOX_PROVIDER=docker"}, Problem, "not set"},
		"DEBUG and none":          {"debug", nil, OK, "counts as 1"},
		"production and docker":   {"provider", []string{"DEBUG=0", "SANDBOX_PROVIDER=docker"}, Problem, "docker sandbox is for local development only"},
		"modal without a token":   {"provider", []string{"SANDBOX_PROVIDER=modal"}, Problem, "Modal API token"},
		"modal with one":          {"provider", []string{"SANDBOX_PROVIDER=modal", "MODAL_TOKEN_ID=a", "MODAL_TOKEN_SECRET=b"}, OK, "modal"},
		"no mounts":               {"repo-mounts", nil, Skipped, ""},
		"a mount that is gone":    {"repo-mounts", []string{"SANDBOX_REPO_MOUNT_MAP=a/b:/no/where"}, Problem, "entry a/b:"},
		"a mount":                 {"repo-mounts", []string{"SANDBOX_REPO_MOUNT_MAP=a/b:" + os.TempDir()}, OK, "1 mapped"},
		"no services/mcp":         {"mcp-env", nil, Skipped, ""},
		"no SITE_URL":             {"site-url", nil, Skipped, ""},
		"SITE_URL here":           {"site-url", []string{"SITE_URL=http://localhost:8010"}, OK, ""},
		"SITE_URL elsewhere":      {"site-url", []string{"SITE_URL=https://x.example"}, Problem, "production"},
		"SITE_URL and a gateway":  {"site-url", []string{"SITE_URL=https://x.example", "SANDBOX_LLM_GATEWAY_URL=" + away}, OK, ""},
		"telemetry without token": {"telemetry", []string{"SANDBOX_AGENT_OTEL_LOGS_URL=http://x"}, Problem, "TOKEN is not"},
		"telemetry without URL":   {"telemetry", []string{"SANDBOX_AGENT_OTEL_LOGS_TOKEN=x"}, Problem, "URL is not"},
		"telemetry":               {"telemetry", []string{"SANDBOX_AGENT_OTEL_LOGS_TOKEN=x", "SANDBOX_AGENT_OTEL_LOGS_URL=http://x"}, OK, ""},
		"unsigned commits":        {"git-guard", []string{"INSIGHTS_ALLOW_UNSIGNED_GIT=1"}, Problem, "turns the git guard off"},
		"no git":                  {"git-guard", []string{"PATH=/nowhere"}, Problem, "no git"},
		"no .env":                 {"env-file", nil, Problem, "there is no"},

		"no model key":           {"model-key", nil, Problem, "no key of a model"},
		"a model key":            {"model-key", []string{"OPENAI_API_KEY=x"}, OK, ""},
		"no key of agents":       {"jwt-key", nil, Problem, "is missing"},
		"a bad key of agents":    {"jwt-key", []string{"SANDBOX_JWT_PRIVATE_KEY=x"}, Problem, "not a PEM key"},
		"no App":                 {"github-app", nil, Problem, "there is none"},
		"half an App":            {"github-app", []string{"GITHUB_APP_CLIENT_ID=Iv1.x", "GITHUB_APP_SLUG=x"}, Problem, "missing: GITHUB_APP_CLIENT_SECRET"},
		"the App ID":             {"github-client-id", []string{"GITHUB_APP_CLIENT_ID=1234"}, Problem, "numeric App ID"},
		"an odd Client ID":       {"github-client-id", []string{"GITHUB_APP_CLIENT_ID=x1"}, Problem, "does not begin"},
		"a Client ID":            {"github-client-id", []string{"GITHUB_APP_CLIENT_ID=Iv23x"}, OK, ""},
		"no Client ID":           {"github-client-id", nil, Skipped, ""},
		"nobody to ask":          {"github-key", nil, Skipped, ""},
		"nothing to compare":     {"clock", nil, Skipped, ""},
		"nothing kept":           {"github-pending", nil, Skipped, ""},
		"port of Caddy":          {"api-url", []string{"SANDBOX_API_URL=http://localhost:8010"}, Problem, "8010"},
		"no API where it is set": {"api-url", []string{"SANDBOX_API_URL=" + away}, Problem, "nothing answers"},
		"MCP of the cloud":       {"mcp-url", []string{"SANDBOX_MCP_URL=https://mcp.hanzo.ai/mcp/"}, Problem, "of the cloud"},
		"no MCP there":           {"mcp-url", []string{"SANDBOX_MCP_URL=" + away + "/mcp"}, Problem, "lack the Insights tools"},
		"no MCP":                 {"mcp-url", nil, Skipped, ""},
		"no gateway there":       {"llm-url", []string{"SANDBOX_LLM_GATEWAY_URL=" + away}, Problem, "nothing answers"},
		"no gateway":             {"llm-url", nil, Skipped, ""},
		"a public address":       {"tunnel", []string{"SANDBOX_MCP_URL=https://a.b.ts.net:10000/mcp"}, Problem, "SANDBOX_MCP_URL is a public address"},
		"and Modal":              {"tunnel", []string{"SANDBOX_MCP_URL=https://a.b.ts.net:10000/mcp", "SANDBOX_PROVIDER=modal"}, OK, ""},
		"no public address":      {"tunnel", nil, Skipped, ""},
		"no proxy":               {"proxy", nil, Skipped, ""},
		"a proxy for localhost":  {"proxy", []string{"HTTPS_PROXY=http://p:1"}, Problem, "does not name localhost"},
		"a proxy":                {"proxy", []string{"HTTPS_PROXY=http://p:1", "NO_PROXY=x, localhost"}, OK, ""},
		"a bad proxy":            {"proxy", []string{"HTTPS_PROXY=http://"}, Problem, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			r := look(t, well(t, tt.environ...), tt.code)
			if r.State != tt.state || !strings.Contains(r.Finding, tt.text) || r.State == Problem && r.Fix == "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestChecksOfSandboxes(t *testing.T) {
	down := func(context.Context) (string, error) {
		return "", errs.New("docker.Ping", errs.Unavailable, "start it", "docker is not reachable")
	}
	for name, tt := range map[string]struct {
		code    string
		environ []string
		change  func(m *Machine)
		state   State
		text    string
	}{
		"docker is down":   {"engine", []string{"SANDBOX_PROVIDER=docker"}, func(m *Machine) { m.Engine = down }, Problem, "not reachable"},
		"no engine at all": {"engine", nil, func(m *Machine) { m.Engine = down }, Skipped, "provider local"},
		"local is chosen":  {"engine", []string{"SANDBOX_PROVIDER=local"}, func(m *Machine) { m.Engine = down }, Skipped, ""},
		"an image of long ago": {"image", nil, func(m *Machine) {
			m.Image = func(context.Context) (string, error) { return "stale", nil }
		}, Problem, "stale; the next run builds it"},
		"an image of one's own": {"image", []string{"INSIGHTSCLI_IMAGE=mine"}, func(m *Machine) {
			m.Image = func(context.Context) (string, error) { return "missing", nil }
		}, Problem, "the image mine is missing"},
		"no image without an engine": {"image", []string{"SANDBOX_PROVIDER=docker"}, func(m *Machine) { m.Engine = down }, Skipped, ""},
		"no namespaces": {"namespaces", nil, func(m *Machine) {
			m.Engine, m.Local = down, func(context.Context) error { return errors.New("not permitted") }
		}, Problem, "not permitted"},
		"namespaces are not needed": {"namespaces", nil, nil, Skipped, ""},
		"no agent server": {"agent-server", nil, func(m *Machine) {
			m.AgentServer = func(context.Context) error { return errors.New("none in this build") }
		}, Problem, "none in this build"},
		"limits of the engine": {"cgroup", nil, nil, Skipped, ""},
		"another build": {"provider", nil, func(m *Machine) {
			m.Built = func(string) error { return errors.New("not in this build") }
		}, Problem, "not in this build"},
		"an application of the cloud": {"array-app", nil, func(m *Machine) {
			m.App = func(context.Context, string) error { return errors.New("Array app not configured for region US") }
		}, Problem, "region US"},
		"a state directory in a file": {"state", nil, func(m *Machine) { m.State = filepath.Join("/dev/null", "x") }, Problem, "/dev/null is not a directory"},
		"the flag": {"tasks-flag", nil, func(m *Machine) {
			m.FlagOff = func(context.Context) ([]int64, error) { return []int64{1, 3}, nil }
		}, Problem, "off for team 1, 3"},
		"an App that was not kept": {"github-pending", nil, func(m *Machine) { m.Pending = "/x" }, Problem, "/x"},
		"a key that GitHub refuses": {"github-key", nil, func(m *Machine) {
			m.GitHub = func(context.Context) (string, time.Duration, error) { return "", 0, errors.New("refused") }
		}, Problem, "refused"},
		"GitHub does not answer": {"github-key", nil, func(m *Machine) {
			m.GitHub = func(context.Context) (string, time.Duration, error) {
				return "", 0, errs.New("ghapp.Verify", errs.Unavailable, "", "no route")
			}
		}, Problem, "no route"},
		"a clock that is wrong": {"clock", nil, func(m *Machine) {
			m.GitHub = func(context.Context) (string, time.Duration, error) { return "x", -time.Hour, nil }
		}, Problem, "off by 1h0m0s"},
		"a key": {"github-key", nil, func(m *Machine) {
			m.GitHub = func(context.Context) (string, time.Duration, error) { return "my-app", 0, nil }
		}, OK, "my-app"},
	} {
		t.Run(name, func(t *testing.T) {
			m := well(t, tt.environ...)
			if tt.change != nil {
				tt.change(&m)
			}
			r := look(t, m, tt.code)
			if r.State != tt.state || !strings.Contains(r.Finding, tt.text) || r.Step != "" && tt.code == "array-app" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestChecksOfFiles(t *testing.T) {
	m := well(t)
	mcp := filepath.Join(m.Project, "services", "mcp")
	if err := os.MkdirAll(mcp, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := look(t, m, "mcp-env"); r.State != Problem || r.Step != "mcp-env" {
		t.Errorf("without the file: %+v", r)
	}
	for _, tt := range []struct {
		text string
		want State
	}{
		{"INSIGHTS_API_BASE_URL=x\n", Problem},
		{"INSIGHTS_API_BASE_URL=x\nexport INSIGHTS_UI_APPS_TOKEN=x\nINSIGHTS_ANALYTICS_API_KEY=\n", OK},
	} {
		if err := os.WriteFile(filepath.Join(mcp, ".env"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := look(t, m, "mcp-env"); r.State != tt.want {
			t.Errorf("%q: %+v", tt.text, r)
		}
	}
	if err := os.WriteFile(m.EnvFile, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := look(t, m, "env-file"); runtime.GOOS != "windows" && (r.State != Problem || r.Fix != "chmod 600 "+m.EnvFile) {
		t.Errorf("a file that others can read: %+v", r)
	}
	if err := os.Chmod(m.EnvFile, 0o600); err != nil {
		t.Fatal(err)
	}
	m.Config.Notices = []string{".env:3: this line cannot be read as KEY=VALUE and is left out"}
	if r := look(t, m, "env-file"); r.State != Problem || !strings.Contains(r.Finding, ".env:3: ") {
		t.Errorf("a line that cannot be read: %+v", r)
	}
	for text, file := range map[string]func() error{
		"holds a NUL byte":     func() error { return os.WriteFile(m.EnvFile, []byte("A=\x00"), 0o600) },
		"which does not exist": func() error { return os.Symlink("nowhere", m.EnvFile) },
	} {
		if err := errors.Join(os.Remove(m.EnvFile), file()); err != nil {
			t.Fatal(err)
		}
		if r := look(t, m, "env-file"); r.State != Problem || r.Step != "" || !strings.Contains(r.Finding, text) {
			t.Errorf("%+v", r)
		}
	}
	if r := look(t, m, "disk"); r.State == Problem && r.Severity == "" {
		t.Errorf("%+v", r)
	}
}

// A port that a setting points at is expected to be taken.
func TestPortsThatAreTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:8787")
	testenv.Need(t, "the free port 8787", err == nil)
	defer func() { _ = ln.Close() }()
	if r := look(t, well(t), "ports"); r.State != Problem || !strings.Contains(r.Finding, "8787 is taken by python3 (12)") {
		t.Errorf("%+v", r)
	}
	m := well(t, "SANDBOX_MCP_URL=http://host.docker.internal:8787/mcp")
	if r := look(t, m, "ports"); r.State != OK {
		t.Errorf("%+v", r)
	}
	if r := look(t, m, "mcp-url"); r.State != OK {
		t.Errorf("%+v", r)
	}
}

func TestCheckKey(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	good := text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	for name, tt := range map[string]struct{ key, want string }{
		"PKCS#1":    {good, ""},
		"PKCS#8":    {text("PRIVATE KEY", der), ""},
		"CRLF":      {strings.ReplaceAll(good, "\n", "\r\n"), ""},
		"escaped":   {strings.ReplaceAll(good, "\n", `\n`), ""},
		"encrypted": {text("ENCRYPTED PRIVATE KEY", der), "encrypted"},
		"small":     {text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(small)), "2048"},
		"public":    {text("PUBLIC KEY", []byte{1}), "not a private RSA key"},
		"text":      {"hello", "not a PEM key"},
	} {
		err := CheckKey(secret.New(tt.key))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
