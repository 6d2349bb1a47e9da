//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// asServer has the test's own program be an MCP server on its standard streams.
const asServer = "INSIGHTSCLI_E2E_MCP"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := loud().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// loud is an MCP server with one tool.
func loud() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "loud", Version: "1"}, nil)
	type words struct {
		Words string `json:"words"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "shout", Description: "Says it louder"},
		func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.ToUpper(in.Words)}}}, nil, nil
		})
	return s
}

// servers configures the user's own MCP servers: one over HTTP behind a token, and one
// that is a program of the host.
func (w *world) servers() {
	const token = "insightscli-e2e-token-of-the-user"
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return loud() }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(out, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(out, r)
	}))
	w.t.Cleanup(server.Close)
	program, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"far":  map[string]any{"url": server.URL, "headers": map[string]string{"Authorization": "Bearer ${FAR_TOKEN}"}},
		"near": map[string]any{"command": program, "env": map[string]string{asServer: "1"}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "FAR_TOKEN="+token, "INSIGHTS_MCP_SERVERS="+string(config))
}

func tool(name, args string) fakemodel.Step {
	return fakemodel.Step{Tool: name, Args: json.RawMessage(args)}
}

// The agent calls our own tools and those of the user's servers.
func TestMCP(t *testing.T) {
	each(t, all, func(w *world) {
		w.servers()
		r := w.succeed([]fakemodel.Step{
			tool("mcp__sandbox__report_progress", `{"message":"half of it"}`),
			tool("mcp__far__shout", `{"words":"over there"}`),
			tool("mcp__near__shout", `{"words":"over here"}`),
			bash("echo an artifact > note.txt"),
			tool("mcp__sandbox__upload_artifact", `{"name":"note.txt","path":"`+w.path("note.txt")+`"}`),
			say("called"),
		}, "--require-mcp", "far,near")
		for _, want := range []string{"OVER THERE", "OVER HERE"} {
			if !strings.Contains(r.updates(), want) {
				w.t.Errorf("no %s in the events:\n%s", want, r.updates())
			}
		}
		progress := false
		for _, ev := range r.events {
			progress = progress || told(task.KindNotice, "half of it")(ev)
		}
		if !progress {
			w.t.Errorf("no progress:\n%s", w.story(r.events))
		}
		kept, err := os.ReadFile(filepath.Join(w.state, "artifacts", "run_"+string(r.result.Run), "note.txt"))
		if err != nil || string(kept) != "an artifact\n" {
			w.t.Errorf("artifact %q: %v", kept, err)
		}
	})
}

// The agent's own word that it is finished ends the run, with its state.
func TestFinish(t *testing.T) {
	for _, a := range all {
		one(t, a, func(w *world) {
			r := w.do([]fakemodel.Step{
				tool("mcp__sandbox__finish", `{"status":"failed","summary":"there is no such thing"}`), say("so it is"),
			})
			if r.code != 7 || r.result.State != task.StateFailed || !strings.Contains(r.result.Error, "there is no such thing") {
				w.t.Errorf("exit code %d, result %+v\n%s", r.code, r.result, w.story(r.events))
			}
		})
	}
}

// A server that is required and does not answer fails the run by its name.
func TestARequiredServerIsMissing(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			w.env = append(w.env, `INSIGHTS_MCP_SERVERS={"gone":{"url":"http://127.0.0.1:1/"}}`)
			r := w.do([]fakemodel.Step{say("never")}, "--require-mcp", "gone")
			if r.code == 0 || !strings.Contains(r.result.Error, "gone") {
				w.t.Errorf("exit code %d, error %q", r.code, r.result.Error)
			}
		})
	}
}

// What agents are taught is in what they tell the model.
func TestSkills(t *testing.T) {
	each(t, []agent{claude, codex}, func(w *world) {
		dir := filepath.Join(w.home, "skills", "tell-the-tide")
		w.write(filepath.Join(dir, "SKILL.md"), "---\nname: tell-the-tide\ndescription: Knows when the water of the harbour is high.\n---\n\n# Tides\n\nLook at the moon.\n")
		w.env = append(w.env, "INSIGHTSCLI_SKILLS="+filepath.Dir(dir))
		w.must("skills", "build")
		if list := w.must("skills", "list"); !strings.Contains(list, "tell-the-tide") {
			w.t.Errorf("list %q", list)
		}
		r := w.succeed([]fakemodel.Step{
			bash("cat /scripts/plugins/insights/skills/tell-the-tide/SKILL.md"), say("learnt"),
		})
		if !strings.Contains(r.updates(), "Look at the moon") {
			w.t.Errorf("the skill is not where it belongs:\n%s", r.updates())
		}
		if body := string(w.requests()[0].Body); !strings.Contains(body, "tell-the-tide") || !strings.Contains(body, "water of the harbour") {
			w.t.Error("the model was not told of the skill")
		}
	})
}
