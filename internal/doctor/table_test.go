package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The troubleshooting table of the set-up guide, row by row: every problem that it
// names has a check whose code answers it.
func TestEveryRowOfTheGuideHasACheck(t *testing.T) {
	var codes []string
	for _, c := range Checks(Machine{}) {
		if c.Title == "" || c.Severity == "" || c.Look == nil || slices.Contains(codes, c.Code) {
			t.Errorf("check %q is not complete, or is there twice", c.Code)
		}
		codes = append(codes, c.Code)
	}
	for _, row := range []struct{ problem, code string }{
		{"Docker not running", "engine"},
		// No Temporal is needed here: the background runner carries out what it would.
		{"Temporal not reachable", "runner"},
		{"Feature flag not enabled", "tasks-flag"},
		{"Array OAuth app missing", "array-app"},
		{"Insights AI app not found for region ...", "insights-ai-app"},
		{"GitHub token expired", "github-key"},
		{`"Task workflow execution blocked"`, "tasks-flag"},
		{"Sandbox image build fails", "disk"},
		{"Agent server health check fails", "agent-server"},
		{"SANDBOX_JWT_PRIVATE_KEY missing", "jwt-key"},
		{"Port conflict on sandbox host port", "ports"},
		{"Sandbox can't reach Insights API", "api-url"},
		{"DEBUG not set", "debug"},
		{"... sandbox is for local development only (RuntimeError at import)", "provider"},
		{"git commit is disabled in Insights Desktop", "git-guard"},
		// What the guide says elsewhere, and what is known to go wrong.
		{"without services/mcp/.env the MCP server refuses to start", "mcp-env"},
		{"the numeric App ID as Client ID", "github-client-id"},
		{"a client secret is missing", "github-app"},
		{"SITE_URL is not localhost: the gateway of production is used", "site-url"},
		{"SANDBOX_MCP_URL of the cloud", "mcp-url"},
		{"telemetry stays off with one of two variables", "telemetry"},
		{"Funnel mappings are public until they are turned off", "tunnel"},
		{"a mapped repository is not there", "repo-mounts"},
		{"the clock is wrong by an hour", "clock"},
	} {
		if !slices.Contains(codes, row.code) {
			t.Errorf("%s: there is no check %q", row.problem, row.code)
		}
	}
}

func TestEveryCodeIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "setup.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks(Machine{}) {
		if !strings.Contains(string(text), "`"+c.Code+"`") {
			t.Errorf("docs/setup.md does not name %s", c.Code)
		}
	}
}
