// Package insightscli_test holds the rules of the architecture that a compiler does
// not check: which package may import which, and that every package says what it is
// for. docs/architecture.md has the picture.
package insightscli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/Insights/insightscli/"

// layers gives every package its layer. Imports go strictly down.
var layers = map[string]int{
	// vocabulary: the standard library and each other's plain types
	"internal/task": 0, "internal/errs": 0, "internal/secret": 0, "internal/term": 0, "internal/build": 0,
	"internal/link/wire": 0, "internal/link/lanes": 0, "internal/filelock": 0, "internal/gitproc": 0, "internal/gitguard": 0, "internal/linediff": 0, "internal/ghshim": 1, "internal/egress/rule": 0, "internal/firstgc": 0,
	"internal/agentserver/archive": 0, "internal/agentserver/jail/plan": 0, "internal/agentserver/jail/seccomp": 0,

	// ports and tools: what several edges speak
	"internal/sandbox": 1, "internal/link": 1, "internal/secret/seal": 1, "internal/statedb/dberr": 1,
	"internal/agentserver/proc": 1, "internal/agentserver/probe": 1, "internal/agentserver/relay": 1, "internal/reply": 1, "internal/agentcli": 1, "setup/dotenv": 1,
	"internal/ghclient": 1,

	// edges: one thing each, over its own SDK
	"internal/config": 2, "internal/statedb": 2, "internal/journal": 2, "internal/owner": 2, "internal/platform": 2,
	"internal/agent": 2, "internal/agentserver": 2, "internal/agentserver/capture": 2, "internal/agentserver/embedded": 2, "internal/agentserver/jail": 2,
	"internal/repo": 2, "internal/image": 2, "internal/skills": 2, "internal/egress": 2,
	"internal/gateway/onestream": 1, "internal/gateway/llm": 2, "internal/gateway/mcp": 2, "internal/gateway/api": 2, "internal/gateway/git": 2,
	"internal/signing": 2, "internal/cifollow": 2, "internal/telemetry": 2,
	"setup": 2, "ghapp": 2,

	// an edge that stands on several
	"internal/publish": 3,

	// drivers
	"internal/sandbox/docker": 3, "internal/sandbox/local": 3, "internal/sandbox/memory": 3,
	"internal/sandbox/sandboxtest": 3, "internal/agentserver/execdriver": 3,
	"internal/agentserver/claude": 3, "internal/agentserver/codex": 3, "internal/agentserver/acp": 3,

	// engine: ports only, never a driver
	"internal/runner/steps": 4, "internal/runner": 5,

	"internal/background": 6, "internal/render": 6, "internal/session": 6, "internal/doctor": 6,
	"internal/transcript": 7, "internal/stats": 3,
	"internal/tui/quiet": 0, "internal/tui/longlog": 1, "internal/tui": 7, "internal/agentserver/serverctl": 7, "internal/selftest": 7, "internal/cli": 8,
	"cmd/insightscli": 9, "cmd/insights-agent-server": 9,

	// the tests' own programs
	"test/fakemodel": 9, "test/fakegithub": 9, "test/fakemodel/serve": 10, "test/e2e": 10, "test/bypass": 10,
}

// importers names the only packages that may import an SDK.
var importers = map[string][]string{
	"github.com/docker/docker":               {"internal/sandbox/docker"},
	"github.com/spf13/cobra":                 {"internal/cli", "internal/cli/docsgen"},
	"github.com/spf13/viper":                 {"internal/config"},
	"github.com/joho/godotenv":               {"internal/config"},
	"modernc.org/sqlite":                     {"internal/statedb"},
	"github.com/hashicorp/yamux":             {"internal/link"},
	"github.com/vishvananda/netlink":         {"internal/agentserver/jail"},
	"github.com/charmbracelet":               {"internal/tui", "internal/tui/quiet"}, // see quiet
	"github.com/google/go-github":            {"ghapp", "internal/signing", "internal/cifollow"},
	"github.com/pkg/browser":                 {"ghapp"},
	"go.temporal.io":                         {"internal/flow"},
	"go.opentelemetry.io":                    {}, // internal/telemetry says why
	"github.com/modal-labs/modal-client":     {"internal/sandbox/modal"},
	"github.com/coder/acp-go-sdk":            {"internal/agentserver/acp"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/gateway/mcp"},
	"github.com/santhosh-tekuri/jsonschema":  {"internal/reply"},
	"github.com/getkin/kin-openapi":          {"test/fakegithub"},
	"github.com/vektah/gqlparser":            {"test/fakegithub", "test/fakegithub/graphqlgen"},
	"github.com/moby/profiles":               {"internal/agentserver/jail/seccomp/gen", "internal/sandbox/docker/seccompgen"},
}

type listed struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsGoDown(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if exempt(name) {
			continue
		}
		mine, ok := layers[name]
		if !ok {
			t.Errorf("%s has no layer: give it one in arch_test.go", name)
			continue
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if theirs, ok := layers[dep]; !ok || theirs >= mine {
				t.Errorf("%s (layer %d) imports %s (layer %d)", name, mine, dep, theirs)
			}
		}
	}
}

// The engine works with any provider and any agent: it knows none of them.
func TestTheEngineKnowsNoDriver(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if l := layers[name]; l != 4 && l != 5 {
			continue
		}
		for _, imp := range p.Imports {
			if dep, ours := strings.CutPrefix(imp, module); ours && layers[dep] == 3 {
				t.Errorf("%s imports the driver %s", name, dep)
			}
		}
	}
}

func TestEverySDKHasItsImporter(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			for sdk, who := range importers {
				if (imp == sdk || strings.HasPrefix(imp, sdk+"/")) && !slices.Contains(who, name) {
					t.Errorf("%s imports %s; only %s may", name, imp, strings.Join(who, ", "))
				}
			}
		}
	}
}

// What is compiled into the command is initialised whenever it starts.
// cmd/insightscli has the bounds of what that may cost.
func TestStartDoesWithout(t *testing.T) {
	const tests = "testing"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/insightscli").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if slices.Contains(strings.Fields(string(out)), tests) {
		t.Errorf("the command holds %s", tests)
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && !strings.HasSuffix(p.ImportPath, "/insightscli") {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// exempt are programs that are not part of the product.
func exempt(name string) bool {
	return strings.HasPrefix(name, "bench") || strings.HasSuffix(name, "gen") || name == "internal/testenv" ||
		name == strings.TrimSuffix(module, "/")
}
