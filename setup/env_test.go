package setup

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/setup/dotenv"
)

func envIn(dir string) Env {
	return Env{
		Path: filepath.Join(dir, ".env"), Example: filepath.Join(dir, ".env.example"), Provider: "docker",
		Given: func(string) bool { return false }, Today: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC),
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outcome carries a step out.
func outcome(t *testing.T, s Step) Result {
	t.Helper()
	results, err := Run(t.Context(), []Step{s}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

func TestEnvOnAFreshClone(t *testing.T) {
	s := envIn(t.TempDir())
	if r := outcome(t, s); r.Outcome != Done {
		t.Fatalf("%+v", r)
	}
	f := dotenv.Parse([]byte(read(t, s.Path)))
	for key, want := range map[string]string{"DEBUG": "1", "SANDBOX_PROVIDER": "docker", "SANDBOX_MCP_URL": LocalMCP} {
		if got, _ := f.Get(key); got != want {
			t.Errorf("%s=%q", key, got)
		}
	}
	seen := map[string]bool{}
	for _, key := range []string{"OIDC_RSA_PRIVATE_KEY", "SANDBOX_JWT_PRIVATE_KEY"} {
		text, _ := f.Get(key)
		block, _ := pem.Decode([]byte(text))
		if block == nil || seen[text] {
			t.Fatalf("%s is no key of its own", key)
		}
		seen[text] = true
		if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil || k.N.BitLen() < 2048 {
			t.Errorf("%s: %v", key, err)
		}
	}
	if n := strings.Count(read(t, s.Path), "# added by insightscli setup-background-agents on 2026-11-29"); n != 1 {
		t.Errorf("%d headings", n)
	}
	if info, err := os.Stat(s.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	before := read(t, s.Path)
	if r := outcome(t, s); r.Outcome != There || read(t, s.Path) != before {
		t.Errorf("a second run: %+v", r)
	}
}

func TestEnvIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs file modes")
	}
	s := envIn(t.TempDir())
	outcome(t, s)
	before := read(t, s.Path)
	if err := os.Chmod(s.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := outcome(t, s); r.Outcome != Done || read(t, s.Path) != before {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(s.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What a developer wrote stays byte for byte; the tail is what was added.
func TestEnvKeepsWhatIsThere(t *testing.T) {
	keys := "OIDC_RSA_PRIVATE_KEY=a\nSANDBOX_JWT_PRIVATE_KEY=b\n"
	for name, tt := range map[string]struct{ before, after string }{
		"nothing to do":       {keys + "DEBUG=0\nSANDBOX_PROVIDER=local\nSANDBOX_MCP_URL=http://x/mcp\n", "="},
		"exported, in CRLF":   {"\ufeffexport DEBUG=0\r\nSANDBOX_PROVIDER='local'\r\nSANDBOX_MCP_URL=http://x\r\n" + strings.ReplaceAll(keys, "\n", "\r\n"), "="},
		"no final newline":    {keys + "SANDBOX_PROVIDER=local\nSANDBOX_MCP_URL=x\n# end", "+\n\n# added by insightscli setup-background-agents on 2026-11-29\nDEBUG=1\n"},
		"a cloud address":     {keys + "DEBUG=1\nSANDBOX_MCP_URL=https://mcp.us.hanzo.ai/mcp # old\nSANDBOX_PROVIDER=modal\n", keys + "DEBUG=1\nSANDBOX_MCP_URL='" + LocalMCP + "' # old\nSANDBOX_PROVIDER=modal\n"},
		"an empty value":      {keys + "DEBUG=\nSANDBOX_MCP_URL=x\nSANDBOX_PROVIDER=modal\n", keys + "DEBUG=1\nSANDBOX_MCP_URL=x\nSANDBOX_PROVIDER=modal\n"},
		"the last one counts": {keys + "DEBUG=\nDEBUG=0\nSANDBOX_MCP_URL=x\nSANDBOX_PROVIDER=modal\n", "="},
	} {
		t.Run(name, func(t *testing.T) {
			s := envIn(t.TempDir())
			write(t, s.Path, tt.before)
			outcome(t, s)
			want := tt.after
			if rest, tail := strings.CutPrefix(want, "+"); tail {
				want = tt.before + rest
			} else if want == "=" {
				want = tt.before
			}
			if got := read(t, s.Path); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestEnvTakesTheExampleFirst(t *testing.T) {
	s := envIn(t.TempDir())
	s.Given = func(name string) bool { return name == "DEBUG" }
	write(t, s.Example, "OIDC_RSA_PRIVATE_KEY='of the example'\nSANDBOX_PROVIDER=local\nSANDBOX_MCP_URL=https://mcp.hanzo.ai/mcp\nOTHER=1\n")
	if r := outcome(t, s); r.Outcome != Done {
		t.Fatalf("%+v", r)
	}
	f := dotenv.Parse([]byte(read(t, s.Path)))
	for key, want := range map[string]string{
		"OIDC_RSA_PRIVATE_KEY": "of the example", "SANDBOX_PROVIDER": "local", "SANDBOX_MCP_URL": LocalMCP, "DEBUG": "", "OTHER": "",
	} {
		if got, _ := f.Get(key); got != want {
			t.Errorf("%s=%q, want %q", key, got, want)
		}
	}
}

func TestEnvShowsNoSecret(t *testing.T) {
	s := envIn(t.TempDir())
	write(t, s.Path, "SANDBOX_JWT_PRIVATE_KEY=canary\nSANDBOX_MCP_URL=https://mcp.hanzo.ai/mcp\n")
	results, err := Run(t.Context(), []Step{s}, Options{DryRun: true})
	r := results[0]
	if err != nil || r.Outcome != ToDo || strings.Contains(r.Diff, "canary") || !strings.Contains(r.Diff, "+SANDBOX_MCP_URL="+LocalMCP+"\n") {
		t.Errorf("%+v, %v", r, err)
	}
	if strings.Contains(read(t, s.Path), "DEBUG") {
		t.Error("a dry run wrote")
	}
}

func TestEnvRefuses(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"a directory": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"a binary":   func(t *testing.T, path string) { write(t, path, "A=\x00\n") },
		"a huge one": func(t *testing.T, path string) { write(t, path, strings.Repeat("A=1\n", 1<<20)) },
		"one that is read-only": func(t *testing.T, path string) {
			write(t, path, "A=1\n")
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := envIn(t.TempDir())
			make(t, s.Path)
			if r := outcome(t, s); r.Outcome != Failed || r.Hint == "" || errs.KindOf(r.Err) != errs.Config {
				t.Errorf("%+v", r)
			}
		})
	}
}

// An address of the cloud is not said to be lacking.
func TestEnvSaysWhatItFound(t *testing.T) {
	s := envIn(t.TempDir())
	write(t, s.Path, "SANDBOX_MCP_URL=https://mcp.hanzo.ai/mcp\n")
	found, err := s.Check(t.Context())
	if err != nil || strings.Contains(found.Text, "lacks SANDBOX_MCP_URL") || !strings.HasSuffix(found.Text, "; "+s.Path+" has the address of the cloud in SANDBOX_MCP_URL") {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := s.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, s.Path, strings.Replace(read(t, s.Path), LocalMCP, "https://mcp.hanzo.ai/mcp", 1))
	if found, err = s.Check(t.Context()); err != nil || found.Text != s.Path+" has the address of the cloud in SANDBOX_MCP_URL" {
		t.Errorf("%+v, %v", found, err)
	}
}

// An example that is no text is not copied.
func TestMCPEnvRefusesAnOddExample(t *testing.T) {
	s := MCPEnv{Project: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, s.path()+".example", "A=\x00\n")
	if r := outcome(t, s); r.Outcome != Failed || r.Hint == "" || strings.Contains(r.Hint, "--env-file") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(s.path()); !os.IsNotExist(err) {
		t.Errorf("it was copied: %v", err)
	}
}

func TestMCPEnv(t *testing.T) {
	project := t.TempDir()
	s := MCPEnv{Project: project}
	if r := outcome(t, s); r.Outcome != Skipped || r.Undone {
		t.Errorf("without services/mcp: %+v", r)
	}
	dir := filepath.Join(project, "services", "mcp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := outcome(t, s); r.Outcome != Skipped || !r.Undone {
		t.Errorf("without an example: %+v", r)
	}
	path := filepath.Join(dir, ".env")
	example := "# Example\r\nINSIGHTS_API_BASE_URL=http://localhost:8010\r\nINSIGHTS_UI_APPS_TOKEN=pk-x\r\n"
	write(t, path+".example", example)
	if r := outcome(t, s); r.Outcome != Done || read(t, path) != example {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v", err)
	}
	if r := outcome(t, s); r.Outcome != There {
		t.Errorf("again: %+v", r)
	}
	write(t, path, "INSIGHTS_API_BASE_URL=mine\n")
	if r := outcome(t, s); r.Outcome != Done || read(t, path) != "INSIGHTS_API_BASE_URL=mine\nINSIGHTS_UI_APPS_TOKEN=pk-x\n" {
		t.Errorf("%+v: %q", r, read(t, path))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".env.tmp-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
