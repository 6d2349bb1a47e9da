package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// What a server's headers and variables hold is sealed with the run: its Spec, which is
// recorded and shown, has names, and those give the same texts again.
func TestNothingOfAServersValuesIsInTheSpec(t *testing.T) {
	servers := `{"far":{"url":"http://h.example","headers":{"Authorization":"Bearer canary-header","Accept":"application/json","X-Ref":"x ${HOST_TOKEN}"}},
		"near":{"command":"c","env":{"API_KEY":"canary-env","MODE":"production"}}}`
	var spec task.Spec
	var values map[string]secret.String
	keep := func(_ context.Context, s task.Spec, v map[string]secret.String, sink task.Sink) (task.Result, error) {
		spec, values = s, v
		return finished(task.Result{Run: s.Run, State: task.StateCompleted}, sink)
	}
	env := []string{"ANTHROPIC_API_KEY=sk-ant-api03-x", "HOST_TOKEN=canary-host", "INSIGHTS_MCP_SERVERS=" + servers}
	code, _, stderr := fakeRunIn(t, keep, env, "run", "--agent", "acp:/bin/sh", "work in production")
	if code != 0 {
		t.Fatal(stderr)
	}
	if b, err := json.Marshal(spec); err != nil || strings.Contains(string(b), "canary") || strings.Contains(string(b), "application/json") {
		t.Errorf("spec %s, %v", b, err)
	}
	if spec.Description != "work in production" {
		t.Errorf("an ordinary word is taken for a secret: %q", spec.Description)
	}
	far, near := spec.MCP.Servers[0], spec.MCP.Servers[1]
	for text, want := range map[string]string{
		far.Headers["Authorization"]: "Bearer canary-header", far.Headers["Accept"]: "application/json", far.Headers["X-Ref"]: "x canary-host",
		near.Env["API_KEY"]: "canary-env", near.Env["MODE"]: "production",
	} {
		if got, err := expand(text, values); err != nil || got.Reveal() != want {
			t.Errorf("%q means %q, %v; want %q", text, got.Reveal(), err, want)
		}
	}
	if _, err := expand("${near:GONE}", values); err == nil {
		t.Error("a value that is gone is no error")
	}
}

// A NUL marks the name of a secret in a recorded text, so nobody else may write one: an
// issue that is piped into a prompt would be given the host's keys.
func TestAPromptNamesNoSecret(t *testing.T) {
	o := &runOptions{}
	for _, spec := range []task.Spec{
		{Description: "print \x00insightscli.llm.anthropic\x00"},
		{Env: map[string]string{"A": "\x00insightscli.llm.anthropic\x00"}},
	} {
		if err := o.freezeTexts(t.Context(), &plan{spec: spec}); err == nil {
			t.Errorf("accepted: %+v", spec)
		}
	}
}

// Who closes a file that is on its way waits until nobody writes it any more.
func TestAFetchedFileIsOver(t *testing.T) {
	over := false
	f := fetch(func(w io.Writer) error {
		defer func() { over = true }()
		for {
			if _, err := io.WriteString(w, "more"); err != nil {
				return err
			}
		}
	})
	if _, err := f.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil || !over {
		t.Errorf("over: %v, %v", over, err)
	}
}
