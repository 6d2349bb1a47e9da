//go:build unix

package claude

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
	"github.com/Insights/insightscli/test/fakemodel"
)

// slow is a tool call that a cancellation finds going on: the program itself refuses a
// plain sleep.
func slow() fakemodel.Step {
	return fakemodel.Step{Bash: `python3 -c "import time;time.sleep(60)"`}
}

// realPlace is one with the real program, whose path is in INSIGHTSCLI_TEST_CLAUDE, and a
// model that does what its prompt says.
func realPlace(t *testing.T) (*place, *fakemodel.Model) {
	t.Helper()
	bin := os.Getenv("INSIGHTSCLI_TEST_CLAUDE")
	testenv.Need(t, "the program of Claude Code (its path in INSIGHTSCLI_TEST_CLAUDE)", bin != "")
	dir := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	model := fakemodel.New(fakemodel.Options{})
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	return newPlace(t, dir, map[string]string{
		"ANTHROPIC_BASE_URL": server.URL + "/anthropic", "ANTHROPIC_AUTH_TOKEN": "insx_token", "CLAUDE_CODE_MAX_RETRIES": "1",
	}), model
}

func script(steps ...fakemodel.Step) string { return fakemodel.Script(steps...) }

// expect compares the end of the nth turn.
func (p *place) expect(n int, want ending) {
	p.t.Helper()
	if got := endingOf(p.turn(n)); got != want {
		p.t.Errorf("turn %d: got %+v\nwant %+v\n%s", n, got, want, p.story())
	}
}

// tells reports whether the story has a line that begins with words, and waits for it.
func (p *place) tells(words string) {
	p.t.Helper()
	p.await(1, func(wire.Frame) bool { return p.has(words) })
}

// has is tells without waiting; the place's lock is held.
func (p *place) has(words string) bool {
	return strings.Contains(p.storyLocked(), words)
}

func TestRealTurns(t *testing.T) {
	p, _ := realPlace(t)
	p.begin(wire.Start{Prompt: script(fakemodel.Step{Bash: "echo from-bash", Think: "hm"}, fakemodel.Say("one"))})
	p.expect(1, ending{stop: "end_turn"})
	p.say(script(fakemodel.Say("two")), "")
	p.expect(2, ending{stop: "end_turn"})
	for _, want := range []string{"call Run: echo from-bash [execute]", "returned completed from-bash", "agent_message_chunk one\n", "agent_message_chunk two\n"} {
		if got := p.story(); strings.Count(got, want) != 1 {
			t.Errorf("%q is not once in\n%s", want, got)
		}
	}
}

func TestRealCancel(t *testing.T) {
	p, _ := realPlace(t)
	p.begin(wire.Start{Prompt: script(slow(), fakemodel.Say("late"))})
	p.tells("call Run: python3")
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputInterrupt}))
	p.expect(1, ending{stop: "cancelled"})
	p.say(script(fakemodel.Say("after")), "")
	p.expect(2, ending{stop: "end_turn"})
}

func TestRealSteer(t *testing.T) {
	p, model := realPlace(t)
	p.begin(wire.Start{Prompt: script(fakemodel.Step{Bash: `python3 -c "import time;time.sleep(3)"`}, fakemodel.Say("one"))})
	p.tells("call Run: python3")
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputSteer, Text: "mind the gap", ID: "s1"}))
	p.expect(1, ending{stop: "end_turn"})
	p.say(script(fakemodel.Say("two")), "")
	p.expect(2, ending{stop: "end_turn"})
	seen := false
	for _, r := range model.Requests() {
		seen = seen || strings.Contains(string(r.Body), "mind the gap")
	}
	if !seen {
		t.Error("the model never saw the words")
	}
}

// Words that come when the model has made its last call make one more turn of the
// program, which is still the same turn to us.
func TestRealSteerAtTheEnd(t *testing.T) {
	p, model := realPlace(t)
	p.begin(wire.Start{Prompt: script(fakemodel.Step{Hold: "gate", Text: text("one two three")})})
	p.must(model.Held(t.Context(), "gate"))
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputSteer, Text: script(fakemodel.Say("steered")), ID: "s1"}))
	model.Release("gate")
	p.expect(1, ending{stop: "end_turn"})
	if !strings.Contains(p.story(), "steered\n_insights/turn_complete") {
		t.Errorf("the words had no reply in the turn:\n%s", p.story())
	}
}

func text(s string) *string { return &s }

func TestRealSchemas(t *testing.T) {
	const list, number = `{"type":"object","properties":{"items":{"type":"array"}},"required":["items"]}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`
	p, _ := realPlace(t)
	reply := func(s string) fakemodel.Step { return fakemodel.Step{Structured: json.RawMessage(s)} }
	p.begin(wire.Start{Prompt: script(reply(`{"items":"a"}`), reply(`{"items":["fixed"]}`)), Schema: []byte(list)})
	p.expect(1, ending{stop: "end_turn", structured: `{"items":["fixed"]}`, rejected: 1})
	p.say(script(reply(`{"n":12345678901234567890}`)), number)
	p.expect(2, ending{stop: "end_turn", structured: `{"n":12345678901234567890}`})
	p.say(script(fakemodel.Say("no reply")), number)
	p.expect(3, ending{stop: "end_turn"})
	p.say(script(fakemodel.Say("words")), `{"type":"object","x-own":1}`) // which the program refuses
	p.expect(4, ending{stop: "end_turn"})
	p.say(script(fakemodel.Say("words")), "")
	p.expect(5, ending{stop: "end_turn"})
	if got := p.story(); strings.Contains(got, "warn") || strings.Count(got, "_insights/sdk_session") != 3 { // one a process
		t.Errorf("told:\n%s", got)
	}
}

func TestRealPermissions(t *testing.T) {
	p, _ := realPlace(t)
	touch := func(name string) string { return script(fakemodel.Step{Bash: "touch " + name}, fakemodel.Say("done")) }
	p.begin(wire.Start{Mode: "interactive", PermissionMode: "default", Prompt: touch("one")})
	for n, answer := range []string{task.AllowOnce, task.RejectOnce, task.AllowAlways} {
		f := p.await(n+1, func(f wire.Frame) bool { return f.Method == wire.EventPermission })
		var asked task.Permission
		p.must(json.Unmarshal(f.Data, &asked))
		p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputPermission, Name: asked.RequestID, Value: answer}))
		p.expect(n+1, ending{stop: "end_turn"})
		if n < 2 {
			p.say(touch([]string{"two", "three"}[n]), "")
		}
	}
	p.say(touch("three"), "")
	p.expect(4, ending{stop: "end_turn"})
	var found []string
	for _, name := range []string{"one", "two", "three", ".claude"} {
		if _, err := os.Stat(filepath.Join(p.driver.host.Dir, name)); err == nil {
			found = append(found, name)
		}
	}
	if strings.Join(found, " ") != "one three" {
		t.Errorf("the workspace has %q", found)
	}
}

func TestRealModes(t *testing.T) {
	p, _ := realPlace(t)
	p.begin(wire.Start{PermissionMode: "default", Prompt: script(fakemodel.Step{Bash: "touch one"}, fakemodel.Say("done"))})
	p.expect(1, ending{stop: "end_turn"}) // nobody is there: it is rejected
	p.tells("returned failed")
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputOption, Name: "mode", Value: "plan"}))
	if err := p.client.Send(t.Context(), task.Input{Kind: task.InputOption, Name: "mode", Value: "silly"}); err == nil {
		t.Error("a mode that does not exist was taken")
	}
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputOption, Name: "mode", Value: fullAccess}))
	p.say(script(fakemodel.Step{Bash: "touch two"}, fakemodel.Say("done")), "")
	p.expect(2, ending{stop: "end_turn"})
	if _, err := os.Stat(filepath.Join(p.driver.host.Dir, "two")); err != nil {
		t.Error(err)
	}
}

func TestRealModelFails(t *testing.T) {
	for name, tt := range map[string]struct {
		step fakemodel.Step // before the words
		want string
	}{
		"500": {fakemodel.Step{Status: 500}, "API Error: 500"},
		"403": {fakemodel.Step{Status: 403}, "API Error: 403"},
		"cut": {fakemodel.Step{Cut: true}, "API Error"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := realPlace(t)
			p.begin(wire.Start{Prompt: script(tt.step, fakemodel.Say("one two three"))})
			if got := p.turn(1); got.StopReason != "error" || !strings.Contains(got.Error, tt.want) {
				t.Errorf("got %+v", got)
			}
			p.say(script(fakemodel.Say("again")), "")
			p.expect(2, ending{stop: "end_turn"})
		})
	}
}

func TestRealRefusal(t *testing.T) {
	p, _ := realPlace(t)
	p.begin(wire.Start{Prompt: script(fakemodel.Step{Refuse: true})})
	p.expect(1, ending{stop: "refusal"})
}

func TestRealProgramDies(t *testing.T) {
	p, _ := realPlace(t)
	p.begin(wire.Start{Prompt: script(slow())})
	p.tells("call Run: python3")
	p.driver.mu.Lock()
	p.driver.proc.end()
	p.driver.mu.Unlock()
	if got := p.turn(1); got.StopReason != "error" || !strings.Contains(got.Error, "SIGKILL") {
		t.Errorf("got %+v", got)
	}
	// Where the program had not written its conversation yet, a new one begins.
	p.say(script(fakemodel.Say("again")), "")
	p.expect(2, ending{stop: "end_turn"})
}

func TestRealServerIsDown(t *testing.T) {
	p, _ := realPlace(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	p.begin(wire.Start{Prompt: script(fakemodel.Say("x")), MCP: []wire.MCPServer{{Name: "tools", URL: dead.URL, Required: true}}})
	if got := p.turn(1); got.StopReason != "error" || !strings.Contains(got.Error, `"tools"`) {
		t.Errorf("got %+v", got)
	}
}

// While the program connects its servers a turn can be cancelled too.
func TestRealCancelBeforeItBegins(t *testing.T) {
	p, _ := realPlace(t)
	asked := make(chan struct{}, 64)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server would not see that the client is gone
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	p.begin(wire.Start{Prompt: script(fakemodel.Say("x")), MCP: []wire.MCPServer{{Name: "tools", URL: silent.URL}}})
	select {
	case <-asked:
	case <-time.After(hangs):
		t.Fatal("the program does not connect")
	}
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputInterrupt}))
	p.expect(1, ending{stop: "cancelled"})
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputCancel}))
}

func TestRealPromptOfTwoMegabytes(t *testing.T) {
	p, _ := realPlace(t)
	p.begin(wire.Start{Prompt: strings.Repeat("words ", 350_000) + script(fakemodel.Say("read"))})
	p.expect(1, ending{stop: "end_turn"})
}
