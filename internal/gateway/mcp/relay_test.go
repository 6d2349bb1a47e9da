package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

func insights(f *far) *InsightsServer {
	return &InsightsServer{URL: f.url(), Token: secret.New("tok"), ProjectID: "7"}
}

func TestRelayForwards(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cs := agent(t, connected(t, cfg), Insights, nil)
	if got := cs.InitializeResult().Instructions; got != "be kind" {
		t.Errorf("instructions %q", got)
	}
	tools, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tools.Tools, func(t *sdk.Tool) bool { return t.Name == "flag-list" })
	if i < 0 || !tools.Tools[i].Annotations.ReadOnlyHint || !strings.Contains(asJSON(t, tools.Tools[i].InputSchema), `"integer"`) {
		t.Errorf("tools %s", asJSON(t, tools))
	}
	res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "plain", Arguments: map[string]any{"id": 1}})
	if err != nil || res.IsError || asJSON(t, res.StructuredContent) != `{"tool":"plain"}` {
		t.Errorf("%+v, %v", res, err)
	}
	if text, bad := use(t, cs, "fails", nil); text != "no such flag" || !bad {
		t.Errorf("%q, %v", text, bad)
	}
	if got := f.called(); !slices.Equal(got, []string{`plain{"id":1}`}) {
		t.Errorf("the server saw %v", got)
	}
	prompt, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "greet"})
	if err != nil || !strings.Contains(asJSON(t, prompt), "hello") {
		t.Errorf("prompt %v, %v", prompt, err)
	}
	for p, err := range cs.Prompts(t.Context(), nil) {
		if err != nil || p.Name != "greet" {
			t.Errorf("%v, %v", p, err)
		}
	}
	content, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///r"})
	if err != nil || !strings.Contains(asJSON(t, content), "content") {
		t.Errorf("resource %v, %v", content, err)
	}
	if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "absent"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("%v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The credentials of the Insights server are ours: the run's token never reaches it, and
// its own never reaches the sandbox.
func TestHeadersOfTheInsightsServer(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cfg.Insights.ReadOnly = true
	cs := agent(t, connected(t, cfg), Insights, nil)
	names(t, cs)
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, want := range map[string]string{
		"Authorization": "Bearer tok", "X-Insights-Project-Id": "7", "X-Insights-Mcp-Version": "2", "X-Insights-Read-Only": "true",
	} {
		if got := f.headers.Get(k); got != want {
			t.Errorf("%s: %q, want %q", k, got, want)
		}
	}
}

func TestReadOnlyHidesAndRefuses(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cfg.Insights.ReadOnly = true
	cs := agent(t, connected(t, cfg), Insights, nil)
	got := names(t, cs)
	for name, want := range map[string]bool{"flag-list": true, "feature-flag-delete": false, "experiment_update": false, "plain": true, "exec": true} {
		if slices.Contains(got, name) != want {
			t.Errorf("%s listed: %v, want %v", name, !want, want)
		}
	}
	for name, args := range map[string]any{
		"feature-flag-delete": nil, "experiment_update": nil, "exec": map[string]any{"command": "call dashboard-create {}"},
	} {
		if text, bad := use(t, cs, name, args); !bad || !strings.Contains(text, "may only read") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if text, bad := use(t, cs, "exec", map[string]any{"command": "call flag-list {}"}); bad {
		t.Errorf("exec: %q", text)
	}
	if got := f.called(); len(got) != 1 {
		t.Errorf("the server saw %v", got)
	}
}

const defaultApproval = `(^|-)(partial-update|update|patch|delete|destroy)(-|$)`

func TestLeave(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights, cfg.Approve = insights(f), defaultApproval
	var asked []task.Permission
	answer := task.RejectOnce
	cfg.Ask = func(_ context.Context, p task.Permission) (string, error) {
		asked = append(asked, p)
		return answer, nil
	}
	cs := agent(t, connected(t, cfg), Insights, nil)
	for i, step := range []struct {
		tool, command, answer string
		asked                 int // in all, after this
		refused               bool
	}{
		{"feature-flag-delete", "", task.RejectOnce, 1, true},
		{"feature-flag-delete", "", task.AllowOnce, 2, false},
		{"feature-flag-delete", "", task.RejectOnce, 3, true},
		{"experiment_update", "", task.AllowAlways, 4, false},
		{"experiment_update", "", task.RejectOnce, 4, false},
		{"plain", "", task.RejectOnce, 4, false},
		{"exec", `call cohort-partial-update {"id": 3}`, task.RejectOnce, 5, true},
		{"exec", `info cohort-partial-update`, task.RejectOnce, 5, false},
		{"exec", `call experiment-update {}`, task.RejectOnce, 5, false}, // always, however it is called
		{"exec", `call flag-list {"name": "x-delete"}`, task.RejectOnce, 5, false},
	} {
		answer = step.answer
		var args any
		if step.command != "" {
			args = map[string]any{"command": step.command}
		}
		text, bad := use(t, cs, step.tool, args)
		if bad != step.refused || len(asked) != step.asked {
			t.Errorf("step %d (%s %s): refused %v, asked %d times: %s", i, step.tool, step.command, bad, len(asked), text)
		}
	}
	p := asked[0]
	if p.Default != task.RejectOnce || len(p.Options) != 3 || p.ToolCall.Title != "insights: feature-flag-delete" || p.ToolCall.Kind != "delete" {
		t.Errorf("%+v", p)
	}
	if got := f.called(); len(got) != 7 {
		t.Errorf("the server saw %v", got)
	}
}

func TestNobodyToAskMeansNo(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Servers, cfg.Approve = []task.MCPServer{{Name: "mine", URL: f.url()}}, defaultApproval
	cs := agent(t, connected(t, cfg), "mine", nil)
	if text, bad := use(t, cs, "feature-flag-delete", nil); !bad || !strings.Contains(text, "--mode interactive") {
		t.Errorf("%q", text)
	}
}

// A server that was started again knows nothing of the session: the call is made in a
// new one.
func TestServerStartedAgain(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cs := agent(t, connected(t, cfg), Insights, nil)
	use(t, cs, "plain", nil)
	f.stop()
	f.start()
	// A tool that only reads: whether the client sees in time that its idle connection
	// is gone is a matter of luck, and one that changes something is not called twice.
	if text, bad := use(t, cs, "flag-list", nil); bad || text != "flag-list" {
		t.Errorf("%q, %v", text, bad)
	}
	f.stop()
	if text, bad := use(t, cs, "plain", nil); !bad || !strings.Contains(text, `the MCP server "insights"`) {
		t.Errorf("%q, %v", text, bad)
	}
	if got := names(t, cs); !slices.Contains(got, "plain") {
		t.Errorf("the known tools are lost: %v", got)
	}
	f.start()
	if text, bad := use(t, cs, "plain", nil); bad {
		t.Errorf("%q", text)
	}
	if got := f.called(); len(got) != 3 {
		t.Errorf("calls %v", got)
	}
}

// A call that was cut may have been carried out: it is not made again.
func TestCutCallIsNotMadeAgain(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cs := agent(t, connected(t, cfg), Insights, nil)
	done := make(chan string, 1)
	go func() {
		res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "slow"})
		done <- fmt.Sprint(err) + asJSON(t, res)
	}()
	<-f.entered
	f.stop()
	f.start()
	if got := <-done; !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "insights") || !strings.Contains(got, "not known") {
		t.Errorf("%s", got)
	}
	if text, bad := use(t, cs, "plain", nil); bad {
		t.Errorf("afterwards: %q", text)
	}
}

func TestCloseEndsACall(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	h := connected(t, cfg)
	cs := agent(t, h, Insights, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "slow"})
	}()
	<-f.entered
	h.Close()
	<-done
}

func TestAnswerWithoutEnd(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cs := agent(t, connected(t, cfg), Insights, nil)
	if text, bad := use(t, cs, "huge", nil); !bad || len(text) > 2000 {
		t.Errorf("%d bytes, error %v", len(text), bad)
	}
	if text, bad := use(t, cs, "plain", nil); bad {
		t.Errorf("afterwards: %q", text)
	}
}

func TestChangedListsAreTold(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	told := make(chan struct{}, 8)
	cs := agent(t, connected(t, cfg), Insights, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} },
	})
	names(t, cs)
	tool(f.server, "fresh", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) { return text("fresh"), nil })
	<-told
	if got := names(t, cs); !slices.Contains(got, "fresh") || slices.Contains(got, marker) {
		t.Errorf("%v", got)
	}
}

func TestProgressIsTold(t *testing.T) {
	f := newFar(t)
	f.server.AddTool(&sdk.Tool{Name: "steps", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: "half"})
			<-f.block
			return text("done"), err
		})
	cfg := config(&run{})
	cfg.Insights = insights(f)
	told := make(chan *sdk.ProgressNotificationParams, 1)
	cs := agent(t, connected(t, cfg), Insights, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
	})
	params := &sdk.CallToolParams{Name: "steps"}
	params.SetProgressToken("mine")
	done := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(t.Context(), params)
		done <- err
	}()
	if p := <-told; p.Message != "half" || p.ProgressToken != "mine" {
		t.Errorf("%+v", p)
	}
	close(f.block)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
