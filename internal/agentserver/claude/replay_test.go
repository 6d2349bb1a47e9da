//go:build unix

package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

const anObject = `{"type":"object"}`

// ending is what tests compare of the end of a turn.
type ending struct {
	stop, err, structured string
	rejected              int
}

func endingOf(c wire.TurnComplete) ending {
	return ending{c.StopReason, c.Error, string(c.Structured), c.Rejected}
}

func TestHowTurnsEnd(t *testing.T) {
	tests := []struct {
		file, schema string
		want         ending
	}{
		{"text.jsonl", "", ending{stop: "end_turn"}},
		{"run.jsonl", "", ending{stop: "end_turn"}},
		{"strange.jsonl", "", ending{stop: "end_turn"}},
		{"denied.jsonl", "", ending{stop: "end_turn"}},
		{"api-error.jsonl", "", ending{stop: "error", err: "API Error: 500 scripted 500. This is a server-side issue, " +
			"usually temporary — try again in a moment. If it persists, check your inference gateway (GATEWAY)."}},
		{"refusal.jsonl", "", ending{stop: "refusal"}},
		{"toolong.jsonl", "", ending{stop: "max_tokens"}},
		{"dies.jsonl", "", ending{stop: "error", err: "Claude Code ended with exit code 1: out of memory"}},
		{"huge.jsonl", "", ending{stop: "error", err: "Claude Code wrote a line of more than 32 MiB"}},
		{"schema.jsonl", anObject, ending{stop: "end_turn", structured: `{"items":["fixed"]}`, rejected: 1}},
		{"exhausted.jsonl", anObject, ending{stop: "end_turn", rejected: 1}},
		{"exact.jsonl", anObject, ending{stop: "end_turn", structured: `{"n":12345678901234567890}`}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			p := replayPlace(t, tt.file)
			p.begin(wire.Start{Prompt: "go", Schema: []byte(tt.schema)})
			if got := endingOf(p.turn(1)); got != tt.want {
				t.Errorf("got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestWhatIsTold(t *testing.T) {
	for file, want := range map[string]string{
		"text.jsonl":    "_insights/sdk_session\nagent_thought_chunk let me see\nagent_message_chunk Hello world. Not streamed.\n",
		"strange.jsonl": "_insights/sdk_session\nagent_message_chunk still here\n",
		"tools.jsonl": "_insights/sdk_session\nplan \ncall Edit: /a/b.go [edit] in_progress\nreturned completed done\n[image]\n" +
			"call Agent: look around [think] in_progress\ncall subagent: Search: x+ [search] in_progress\nreturned failed none\n" +
			"call sandbox: push [other] in_progress\nreturned failed\nreturned failed\n",
		"denied.jsonl": "call Run: touch zz [execute] in_progress\nreturned failed touch in '/tmp/workspace/repos/org/repo/zz' needs approval. " +
			"The path is inside the working directories for this session ('/tmp/workspace/repos/org/repo'), and Claude Code asks " +
			"before a shell command creates, changes or removes files there.\n",
		"api-error.jsonl": "warn: the model did not answer: 500 server_error; retry 1 of 1\n",
		"refusal.jsonl":   "_insights/sdk_session\nwarn: API Error: the safeguards flagged this\n",
		"run.jsonl": "_insights/sdk_session\ncall Run: echo hello > f.txt; id -un; pwd [execute] in_progress\n" +
			"returned completed agent\n/tmp/workspace/repos/org/repo\ncall sandbox: git_signed_commit [other] in_progress\n" +
			"returned completed {\"run_id\":\"run-1\",\"sha\":\"deadbeef\",\"signed\":true}\nagent_message_chunk All done.\n",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := replayPlace(t, file)
			p.begin(wire.Start{Prompt: "go"})
			p.turn(1)
			got, _, _ := strings.Cut(p.story(), "_insights/turn_complete")
			lines := func(s string) string { return strings.ReplaceAll(s, " \n", "\n") }
			if lines(got) != lines(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// After a process has died the next prompt has another, with the same conversation.
func TestADeadProgramIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := replayPlace(t, "dies.jsonl", "text.jsonl")
	p.begin(wire.Start{Prompt: "go"})
	p.turn(1)
	p.say("on", "")
	p.turn(2)
	if log := p.log(); strings.Count(log, "--resume 00000000-0000-4000-8000-000000000001") != 1 {
		t.Errorf("told:\n%s", log)
	}
}

func TestASchemaThatTheProgramRefusesIsPutIntoThePrompt(t *testing.T) {
	t.Parallel()
	p := replayPlace(t, "#die Error: --json-schema is not a valid JSON Schema", "text.jsonl")
	p.begin(wire.Start{Prompt: "go", Schema: []byte(`{"type":"object","x":1}`)})
	p.turn(1)
	_, second, _ := strings.Cut(p.log()[1:], "argv")
	if strings.Contains(second, "--json-schema") {
		t.Errorf("the flag was given again: %s", second)
	}
}

func TestServersThatAreRequired(t *testing.T) {
	for name, want := range map[string]ending{
		"sandbox": {stop: "end_turn"},
		"broken":  {stop: "error", err: `MCP server "broken" is required, and the agent could not connect to it (failed)`},
		"absent":  {stop: "error", err: `MCP server "absent" is required, and the agent does not have it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := replayPlace(t, "text.jsonl")
			p.begin(wire.Start{Prompt: "go", MCP: []wire.MCPServer{{Name: name, URL: "http://127.0.0.1:1/x", Required: true}}})
			if got := endingOf(p.turn(1)); got != want {
				t.Errorf("got %+v", got)
			}
			if log := p.log(); strings.Contains(log, "insx_token") || !strings.Contains(log, `"Bearer ${INSIGHTS_PERSONAL_API_KEY}"`) {
				t.Errorf("told:\n%s", log)
			}
		})
	}
}

func TestAnOldProgramIsRefused(t *testing.T) {
	t.Parallel()
	p := replayPlace(t, "old.jsonl")
	p.begin(wire.Start{Prompt: "go"})
	if got := p.turn(1); got.StopReason != agentserver.StopError || !strings.Contains(got.Error, "1.0.3") ||
		!strings.Contains(got.Error, "npm install -g @anthropic-ai/claude-code") {
		t.Errorf("got %+v", got)
	}
}

func TestNoProgram(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir(), map[string]string{"PATH": t.TempDir()})
	err := p.client.Start(t.Context(), wire.Start{Agent: Name, Prompt: "go"})
	p.must(err)
	h, err := p.client.Health(t.Context())
	p.must(err)
	if !strings.Contains(h.Error, "npm install -g @anthropic-ai/claude-code") {
		t.Errorf("got %q", h.Error)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	p := replayPlace(t, "text.jsonl", "text.jsonl")
	p.begin(wire.Start{Prompt: "go"})
	p.turn(1)
	for name, bad := range map[string]bool{"model": false, "effort": true, "colour": true} {
		err := p.client.Send(t.Context(), task.Input{Kind: task.InputOption, Name: name, Value: "opus"})
		if (err != nil) != bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.say("on", "")
	p.turn(2)
	if log := p.log(); strings.Count(log, "--model opus") != 1 {
		t.Errorf("told:\n%s", log)
	}
}

// A program that was killed before it had written its conversation has none to go on with:
// it says so as the result of the next prompt, which then begins a new one.
func TestALostConversationBeginsAnew(t *testing.T) {
	t.Parallel()
	p := replayPlace(t, "lost.jsonl")
	p.begin(wire.Start{Prompt: "go"})
	p.turn(1)
	p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputOption, Name: "model", Value: "other"})) // another process
	p.say("on", "")
	if got := p.turn(2); got.StopReason != "end_turn" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(p.story(), "warn: the agent's conversation is gone") {
		t.Errorf("told:\n%s", p.story())
	}
}

// What the model says again after its stream was cut stands apart from the first part.
func TestWordsAfterACutStandApart(t *testing.T) {
	t.Parallel()
	p := replayPlace(t, "cut.jsonl")
	p.begin(wire.Start{Prompt: "go"})
	p.turn(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	var words strings.Builder
	for _, f := range p.frames {
		var e struct{ Update update }
		if f.Method == wire.EventUpdate && json.Unmarshal(f.Data, &e) == nil {
			words.WriteString(textOf(json.RawMessage("[" + string(e.Update.Content) + "]")))
		}
	}
	if words.String() != "Hello wo\n\nHello world." {
		t.Errorf("told %q", words.String())
	}
}
