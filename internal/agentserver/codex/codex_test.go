//go:build unix

package codex

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// The sample is of a real Codex: a schema, an interrupted command, a request for leave,
// a model that fails.
func TestReplay(t *testing.T) {
	path, err := filepath.Abs("testdata/codex-app-server.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, fakeEnv(t, path))
	p.must(p.start(wire.Start{Mode: string(task.ModeInteractive), PermissionMode: "read-only"}))
	e, _ := p.await(0, "session", func(e event) bool { return e.method == "_insights/sdk_session" })
	if e.data["sessionId"] != "00000000-0000-4000-8000-000000000001" || e.data["adapter"] != "codex" || e.data["version"] != "0.171.0" {
		t.Errorf("session %v", e.data)
	}

	r := p.turn("list items", `{"type":"object"}`)
	if r.stop != "end_turn" || r.structured != `{"items":["z"]}` || r.text() != `{"items":["z"]}` {
		t.Errorf("schema: %q %q %q", r.stop, r.structured, r.text())
	}
	if got := r.tools(); !slices.Equal(got, []string{`execute echo app completed "app\n"`}) {
		t.Errorf("schema: tools %q", got)
	}

	from := p.count()
	id := p.say("sleep", "")
	p.running(from)
	p.input(task.Input{Kind: task.InputInterrupt})
	if r = p.end(id); r.stop != "cancelled" || r.err != "" || !slices.Equal(r.tools(), []string{"execute sleep 20 failed"}) {
		t.Errorf("interrupt: %q %q %q", r.stop, r.err, r.tools())
	}

	from = p.count()
	id = p.say("touch", "")
	tool, _ := p.answer(from, task.AllowOnce)
	if tool["title"] != "touch x.txt" || tool["kind"] != "execute" || tool["toolCallId"] != "call_15" {
		t.Errorf("asked for %v", tool)
	}
	if r = p.end(id); r.stop != "end_turn" {
		t.Errorf("leave: %q %q", r.stop, r.err)
	}

	r = p.turn("fail", "")
	if r.stop != "error" || !strings.HasPrefix(r.err, "We’re currently experiencing high demand") {
		t.Errorf("failure: %q %q", r.stop, r.err)
	}
	if !strings.HasPrefix(r.notices(), "warn: codex: Reconnecting... 1/1: We’re") {
		t.Errorf("failure: notices %q", r.notices())
	}
}

// What a turn is told to be by anything but turn/completed it is not.
func TestHowTurnsEnd(t *testing.T) {
	for behaviour, want := range map[string]struct{ stop, err string }{
		"completed":       {"end_turn", ""},
		"interrupted":     {"cancelled", ""},
		"failed":          {"error", "codex says no more than that the turn has failed"},
		"odd":             {"error", `codex ended the turn as "odd"`},
		"noise":           {"end_turn", ""},
		"unknown request": {"end_turn", ""},
		"dies":            {"error", "codex ended with exit code 101: thread 'main' panicked at core:1"},
		"long line":       {"error", "codex was ended: it wrote a line of more than 32 MiB"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			p := newPlace(t, fakeEnv(t, behaviour))
			p.must(p.start(wire.Start{}))
			r := p.turn("hello", "")
			if r.stop != want.stop || r.err != want.err {
				t.Errorf("%q %q", r.stop, r.err)
			}
			if behaviour == "unknown request" && r.text() != "item/new/thing is not known here" {
				t.Errorf("answered %q", r.text())
			}
			if again := p.turn("again", ""); again.stop != want.stop { // the session goes on
				t.Errorf("again: %q %q", again.stop, again.err)
			}
		})
	}
}

// A Codex that does not obey is ended, and started again for the next turn.
func TestDeafCodexIsEnded(t *testing.T) {
	p := newPlace(t, fakeEnv(t, "deaf"))
	p.patience = 100 * time.Millisecond
	p.must(p.start(wire.Start{}))
	for range 2 {
		from := p.count()
		id := p.say("hello", "")
		p.running(from)
		p.input(task.Input{Kind: task.InputInterrupt})
		if r := p.end(id); r.stop != "cancelled" {
			t.Errorf("%q %q", r.stop, r.err)
		}
	}
}

func TestCloseWithinATurn(t *testing.T) {
	p := newPlace(t, fakeEnv(t, "waits"))
	p.must(p.start(wire.Start{}))
	from := p.count()
	id := p.say("hello", "")
	p.running(from)
	p.input(task.Input{Kind: task.InputCancel})
	if r := p.end(id); r.stop != "cancelled" {
		t.Errorf("%q %q", r.stop, r.err)
	}
}

// One line says what is wrong, and what to do.
func TestWhatCannotBegin(t *testing.T) {
	const noProgram = "the sandbox has no codex: install it in the image, or on this machine (npm install -g @openai/codex)"
	for name, tt := range map[string]struct {
		env   map[string]string
		start wire.Start
		want  string
	}{
		"no program":   {map[string]string{"PATH": "/nowhere"}, wire.Start{}, noProgram},
		"old":          {fakeEnv(t, "old"), wire.Start{}, "agent codex has version 0.99.0, and 0.100.0 is the oldest that works: npm install -g @openai/codex@latest"},
		"broken":       {fakeEnv(t, "broken at start"), wire.Start{}, "codex ended with exit code 1: Error: invalid transport in `mcp_servers.a`"},
		"mode":         {fakeEnv(t, ""), wire.Start{PermissionMode: "bypassPermissions"}, `codex has no permission mode "bypassPermissions"; it has plan, auto, read-only and full-access`},
		"no gateway":   {map[string]string{"OPENAI_BASE_URL": ""}, wire.Start{}, "OPENAI_BASE_URL is not set"},
		"server name":  {fakeEnv(t, ""), wire.Start{MCP: []wire.MCPServer{{Name: "a.b"}}}, `MCP server "a.b"`},
		"no directory": {fakeEnv(t, ""), wire.Start{Dir: "/no/such"}, "start codex: working directory: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := newPlace(t, tt.env).start(tt.start)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	p := newPlace(t, fakeEnv(t, "completed"))
	p.must(p.start(wire.Start{}))
	p.input(task.Input{Kind: task.InputOption, Name: "model", Value: "m"})
	p.input(task.Input{Kind: task.InputOption, Name: "effort", Value: "high"})
	p.input(task.Input{Kind: task.InputOption, Name: "mode", Value: "plan"})
	if s := p.driver.settings; s.model != "m" || s.effort != "high" || s.mode != modePlan {
		t.Errorf("%+v", s)
	}
	for _, in := range []task.Input{{Name: "mode", Value: "yolo"}, {Name: "model"}, {Name: "color", Value: "red"}} {
		in.Kind = task.InputOption
		if err := p.client.Send(t.Context(), in); err == nil {
			t.Errorf("%+v was taken", in)
		}
	}
	params, planned := p.driver.turnParams(newTurn(nil), "x")
	mode, _ := params["collaborationMode"].(map[string]any)
	if !planned || params["approvalPolicy"] != "untrusted" || mode["mode"] != "plan" {
		t.Errorf("%v", params)
	}
}

func TestCancelBeforeTheFirstTurn(t *testing.T) {
	p := newPlace(t, fakeEnv(t, "completed"))
	p.must(p.start(wire.Start{}))
	p.driver.Cancel(t.Context())
	if r := p.turn("hello", ""); r.stop != "cancelled" {
		t.Errorf("%q", r.stop)
	}
	if r := p.turn("hello", ""); r.stop != "end_turn" {
		t.Errorf("then %q", r.stop)
	}
}
