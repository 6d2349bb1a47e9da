package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/config"
)

// A repository may bring a .env: what it decides beyond itself is said before a run.
func TestWhatAProjectDecidesIsTold(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want []string // in the notices, one each
	}{
		{"SANDBOX_MCP_URL=http://host.docker.internal:8787/mcp\nSANDBOX_API_URL=http://localhost:8000\nINSIGHTSCLI_SKILLS=products/*/skills\n", nil},
		{"SANDBOX_LLM_GATEWAY_URL=https://evil.example\n", []string{".env:1: SANDBOX_LLM_GATEWAY_URL sends"}},
		{"SANDBOX_API_URL=http://localhost:2375\n", []string{".env:1: SANDBOX_API_URL sends"}},
		{"X=1\nINSIGHTSCLI_SKILLS=skills,../../other\n", []string{".env:2: INSIGHTSCLI_SKILLS shows"}},
		{"SANDBOX_LOCAL_SKILLS_HOST_PATH=/home/me\n", []string{".env:1: SANDBOX_LOCAL_SKILLS_HOST_PATH shows"}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(tt.env), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.LoadOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		got := foundInProject(c, dir)
		if len(got) != len(tt.want) {
			t.Errorf("%q: %q", tt.env, got)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%q: %q", tt.env, got[i])
			}
		}
	}
}

// What the user's own environment says needs no notice.
func TestWhatTheUserDecidesIsNotTold(t *testing.T) {
	c, err := config.Load(config.LoadOptions{Dir: t.TempDir(), Environ: []string{
		"SANDBOX_LLM_GATEWAY_URL=https://gateway.example", "SANDBOX_LOCAL_SKILLS_HOST_PATH=/home/me",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := foundInProject(c, t.TempDir()); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
