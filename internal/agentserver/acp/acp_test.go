//go:build unix

package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

func TestTurns(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "say hello", MCP: []wire.MCPServer{{Name: "tools", URL: "http://127.0.0.1:1/tools"}}})
	if d := p.turn(nil); d.text != "hello" || d.end.StopReason != "end_turn" || d.end.Error != "" {
		t.Errorf("first turn %+v", d)
	}
	if d := p.prompt("say again"); d.text != "again" {
		t.Errorf("second turn %+v", d)
	}
	for _, part := range []string{
		`"name":"tools"`, `"url":"http://127.0.0.1:1/tools"`, `"type":"http"`,
		`{"name":"Authorization","value":"Bearer run-token"}`, `"cwd":"` + p.dir + `"`,
	} {
		if asked := p.asked("session/new"); !strings.Contains(asked, part) {
			t.Errorf("%s is not in %s", part, asked)
		}
	}
	if asked := p.asked("initialize"); !strings.Contains(asked, `"protocolVersion":1`) || strings.Contains(asked, "true") {
		t.Errorf("it was told %s", asked)
	}
}

func TestStopReasons(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "stop refusal"})
	d := p.turn(nil)
	for _, reason := range []string{"refusal", "max_tokens", "max_turn_requests", "cancelled", "end_turn"} {
		if reason != "refusal" {
			d = p.prompt("stop " + reason)
		}
		if d.end.StopReason != reason || d.end.Error != "" {
			t.Errorf("%s: %+v", reason, d.end)
		}
	}
	if d := p.prompt("fail"); d.end.StopReason != "error" || d.end.Error != "Internal error: the model does not answer" {
		t.Errorf("error: %+v", d.end)
	}
	if d := p.prompt("stop "); d.end.StopReason != "error" {
		t.Errorf("no reason: %+v", d.end)
	}
	if d := p.prompt("say on"); d.text != "on" {
		t.Errorf("after an error: %+v", d)
	}
}

func TestSchemaIsInThePrompt(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "say x", Schema: json.RawMessage(`{"type":"object"}`)})
	p.turn(nil)
	if asked := p.asked("session/prompt"); !strings.Contains(asked, `say x`) || !strings.Contains(asked, `{\"type\":\"object\"}`) {
		t.Errorf("it was asked %s", asked)
	}
}

// What is chosen, and what cannot be.
func TestChoices(t *testing.T) {
	for name, tt := range map[string]struct {
		agent string
		start wire.Start
		set   string // part of what was set
		not   string // method that was not used
		fails string
	}{
		"full access":            {"modes", wire.Start{}, `"modeId":"bypassPermissions"`, "session/set_model", ""},
		"never auto":             {"options", wire.Start{}, `"configId":"mode","sessionId":"S","value":"default"`, "session/set_mode", ""},
		"a mode":                 {"modes", wire.Start{PermissionMode: "default"}, `"modeId":"default"`, "", ""},
		"auto, if it is wanted":  {"modes", wire.Start{PermissionMode: "auto"}, `"modeId":"auto"`, "", ""},
		"an unknown mode":        {"modes", wire.Start{PermissionMode: "plan"}, "", "", `it has no permission mode "plan" (it has auto, default, bypassPermissions)`},
		"a mode, there are none": {"load", wire.Start{PermissionMode: "plan"}, "", "", "it has no permission modes"},
		"no modes at all":        {"load", wire.Start{}, "", "session/set_mode", ""},
		"a model":                {"modes", wire.Start{Model: "big"}, `"modelId":"big"`, "", ""},
		"a model as option":      {"options", wire.Start{Model: "big"}, `"configId":"m","sessionId":"S","value":"big"`, "", ""},
		"an unknown model":       {"modes", wire.Start{Model: "huge"}, "", "", `it has no model "huge" (it has small, big)`},
		"an effort":              {"options", wire.Start{Effort: "high"}, `"configId":"effort","sessionId":"S","value":"high"`, "", ""},
		"an effort, without":     {"modes", wire.Start{Effort: "high"}, `"modeId"`, "session/set_config_option", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, tt.agent)
			failure := p.begin(tt.start)
			if tt.fails == "" && failure != "" || !strings.Contains(failure, tt.fails) {
				t.Fatalf("it says %q", failure)
			}
			if tt.not != "" && p.asked(tt.not) != "" {
				t.Errorf("it was asked %s", p.asked(tt.not))
			}
			all := p.asked("session/set_mode") + p.asked("session/set_model") + p.asked("session/set_config_option")
			if want := strings.ReplaceAll(tt.set, "S", p.driver.session); !strings.Contains(all, want) {
				t.Errorf("%s is not in %s", want, all)
			}
		})
	}
}

func TestOptionsOfARunningSession(t *testing.T) {
	p := newPlace(t, "modes")
	p.started(wire.Start{})
	for option, want := range map[string]string{
		"mode": `"modeId":"default"`, "model": `"modelId":"default"`, "fast": `"configId":"fast"`,
	} {
		p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputOption, Name: option, Value: "default"}))
		all := p.asked("session/set_mode") + p.asked("session/set_model") + p.asked("session/set_config_option")
		if !strings.Contains(all, want) {
			t.Errorf("%s: %s is not in %s", option, want, all)
		}
	}
}

// Why there is no session is one line that names the agent.
func TestStartsThatFail(t *testing.T) {
	required := wire.Start{MCP: []wire.MCPServer{{Name: "insights", URL: "http://x", Required: true}}}
	for name, tt := range map[string]struct {
		words string
		start wire.Start
		says  string
	}{
		"it dies":              {"no-start", wire.Start{}, "it ended with exit code 4: cannot find my configuration"},
		"another protocol":     {"no-protocol", wire.Start{}, "it does not speak the Agent Client Protocol: Method not found"},
		"a newer one":          {"newer", wire.Start{}, "it speaks version 2"},
		"nobody is logged in":  {"login", wire.Start{}, "it wants a login (it knows: browser, openai-api-key)"},
		"a required server":    {"no-http", required, `it knows no MCP servers over HTTP, and "insights" is required`},
		"a session without id": {"replay", wire.Start{Model: "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, tt.words)
			failure := p.begin(tt.start)
			if !strings.Contains(failure, tt.says) || strings.Contains(failure, "\n") {
				t.Errorf("it says %q", failure)
			}
		})
	}
}

func TestCommandsThatAreNone(t *testing.T) {
	for name, says := range map[string]string{
		"acp:": "has no command", "acp: ''": "has no command", "acp:'x": "a quote is not closed",
		"acp:no-such-agent --acp": "no-such-agent: command not found", "exec": "is not one of",
	} {
		p := placeOf(t, name, nil)
		if failure := p.begin(wire.Start{}); !strings.Contains(failure, says) {
			t.Errorf("%s: %q", name, failure)
		}
	}
}

func TestAgentThatNeverAnswers(t *testing.T) {
	p := newPlace(t, "silent")
	p.times = times{start: 100 * time.Millisecond, cancel: hangs, grace: 50 * time.Millisecond}
	if failure := p.begin(wire.Start{}); !strings.Contains(failure, "it has not made a session within 100ms") {
		t.Errorf("it says %q", failure)
	}
}

// An agent that wants a key takes it from its environment, if it is told to.
func TestLoginByKey(t *testing.T) {
	p := newPlace(t, "key")
	p.started(wire.Start{Prompt: "say x"})
	if d := p.turn(nil); d.text != "x" || !strings.Contains(p.asked("authenticate"), `"methodId":"openai-api-key"`) {
		t.Errorf("%+v", d)
	}
}

func TestOptionalServersOfAnAgentWithoutHTTP(t *testing.T) {
	p := newPlace(t, "no-http")
	p.started(wire.Start{Prompt: "say x", MCP: []wire.MCPServer{{Name: "tools", URL: "http://x"}}})
	if d := p.turn(nil); len(d.notices) != 1 || !strings.Contains(d.notices[0], "works without tools") {
		t.Errorf("%q", d.notices)
	}
	if asked := p.asked("session/new"); !strings.Contains(asked, `"mcpServers":[]`) {
		t.Errorf("it was asked %s", asked)
	}
}

func TestPermissions(t *testing.T) {
	const all = "ask allow_once allow_always reject_once reject_always"
	for name, tt := range map[string]struct {
		words  string
		start  wire.Start
		prompt string
		pick   string
		want   string // of the outcome
	}{
		"nobody is there":        {"modes", wire.Start{}, all, "", `"optionId":"id-reject_once"`},
		"a mode that asks":       {"modes", wire.Start{PermissionMode: "default"}, all, "", `"optionId":"id-reject_once"`},
		"full access, no mode":   {"load", wire.Start{}, all, "", `"optionId":"id-allow_once"`},
		"somebody allows":        {"modes", wire.Start{Mode: "interactive"}, all, "id-allow_always", `"optionId":"id-allow_always"`},
		"only a lasting no":      {"modes", wire.Start{}, "ask allow_once reject_always", "", `"optionId":"id-reject_always"`},
		"no option at all":       {"modes", wire.Start{}, "ask", "", `"outcome":"cancelled"`},
		"nothing that refuses":   {"modes", wire.Start{}, "ask allow_once", "", `"outcome":"cancelled"`},
		"somebody, and no modes": {"load", wire.Start{Mode: "interactive"}, all, "id-reject_once", `"optionId":"id-reject_once"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, tt.words)
			tt.start.Prompt = tt.prompt
			p.started(tt.start)
			d := p.turn(func(_ string, ask *task.Permission) {
				if ask == nil || tt.pick == "" {
					return
				}
				if ask.ToolCall.Title != "rm -r /" || ask.ToolCall.Kind != "execute" || string(ask.ToolCall.Input) != `{"command":"rm"}` || len(ask.Options) != 4 {
					t.Errorf("people are shown %+v", ask)
				}
				p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputPermission, Name: ask.RequestID, Value: tt.pick}))
			})
			if !strings.Contains(d.text, tt.want) {
				t.Errorf("the agent got %s", d.text)
			}
		})
	}
}

// A cancel while somebody is asked answers the agent too: it would wait for ever.
func TestCancelAnswersRequestsForLeave(t *testing.T) {
	p := newPlace(t, "modes", "deaf")
	p.started(wire.Start{Mode: "interactive", Prompt: "ask allow_once reject_once"})
	d := p.turn(func(_ string, ask *task.Permission) {
		if ask != nil {
			p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputInterrupt}))
		}
	})
	if d.end.StopReason != "cancelled" || !strings.Contains(d.text, `"outcome":"cancelled"`) {
		t.Errorf("%+v", d)
	}
}

func TestCancel(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "hang"})
	cancelled := false
	d := p.turn(func(text string, _ *task.Permission) {
		if text != "" && !cancelled {
			cancelled = true
			p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputInterrupt}))
		}
	})
	if d.end.StopReason != "cancelled" || d.end.Error != "" {
		t.Errorf("%+v", d.end)
	}
	if d := p.prompt("say on"); d.text != "on" || strings.Count(p.asked("initialize"), "\n") != 1 {
		t.Errorf("after the cancel: %+v", d)
	}
}

// An agent that heeds neither the cancel nor SIGTERM is killed, and started again.
func TestCancelOfAStubbornAgent(t *testing.T) {
	p := newPlace(t, "stubborn", "load")
	p.times = times{start: hangs, cancel: 50 * time.Millisecond, grace: 50 * time.Millisecond}
	p.started(wire.Start{})
	p.send("hang")
	d := p.turn(func(text string, _ *task.Permission) {
		if text == "hanging" {
			p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputInterrupt}))
		}
	})
	if d.end.StopReason != "cancelled" {
		t.Errorf("%+v", d.end)
	}
	if d := p.prompt("say on"); d.text != "on" || d.end.StopReason != "end_turn" {
		t.Errorf("after the cancel: %+v", d)
	}
}

// The turn of an agent that dies has failed, with its last words; the next one takes up
// the session, whose history is in the journal already.
func TestDeathAndResurrection(t *testing.T) {
	p := newPlace(t, "load", "modes")
	p.started(wire.Start{Prompt: "die"})
	session := p.driver.session
	d := p.turn(nil)
	if want := "the agent is lost: it ended with exit code 3: panic: out of luck"; d.end.Error != want || d.end.StopReason != "error" || d.text != "last words" {
		t.Errorf("%+v", d)
	}
	if d := p.prompt("say on"); d.text != "on" || len(d.notices) > 0 {
		t.Errorf("%+v", d)
	}
	if asked := p.asked("session/load"); !strings.Contains(asked, session) || !strings.Contains(asked, `"cwd"`) {
		t.Errorf("it was asked %s", asked)
	}
	if strings.Count(p.asked("session/set_mode"), "\n") != 2 {
		t.Error("the mode was not set again")
	}
}

// What an agent leaves running with its streams does not keep its turn from ending.
func TestDeathBesideAnOrphan(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "leave"})
	if d := p.turn(nil); !strings.Contains(d.end.Error, "it ended with exit code 3") {
		t.Errorf("%+v", d.end)
	}
}

func TestResurrectionWithoutMemory(t *testing.T) {
	for words, says := range map[string]string{"modes": "it cannot load sessions", "load load-fails": "Invalid session identifier"} {
		p := newPlace(t, words)
		p.started(wire.Start{Prompt: "die"})
		p.turn(nil)
		d := p.prompt("say on")
		if d.text != "on" || len(d.notices) != 1 || !strings.Contains(d.notices[0], "knows nothing of what was said before: ") || !strings.Contains(d.notices[0], says) {
			t.Errorf("%s: %+v", words, d)
		}
	}
}

func TestNoiseIsTolerated(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "noise"})
	d := p.turn(nil)
	if !strings.Contains(d.text, "-32601") || d.end.StopReason != "end_turn" {
		t.Errorf("%+v", d)
	}
	var kinds []string
	for _, u := range d.updates {
		var head struct {
			Kind string `json:"sessionUpdate"`
		}
		_ = json.Unmarshal(u, &head)
		kinds = append(kinds, head.Kind)
	}
	if strings.Join(kinds, " ") != "from_the_future agent_message_chunk agent_message_chunk" {
		t.Errorf("updates %q", kinds)
	}
}

func TestHugeUpdatesAndFloods(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "big"})
	d := p.turn(nil)
	if d.end.StopReason != "end_turn" || d.text != strings.Repeat("é", 1<<20) || !strings.Contains(fmt.Sprintf("%s", d.updates), "are left out") {
		t.Errorf("%d updates, %d bytes of text, %+v", len(d.updates), len(d.text), d.end)
	}
	if d := p.prompt("flood"); len(d.updates) != 3000 || d.end.StopReason != "end_turn" {
		t.Errorf("%d updates, %+v", len(d.updates), d.end)
	}
}

func TestLineWithoutEnd(t *testing.T) {
	p := newPlace(t)
	p.started(wire.Start{Prompt: "endless"})
	if d := p.turn(nil); !strings.Contains(d.end.Error, "a line that is too long: more than 33554432 bytes") {
		t.Errorf("%+v", d.end)
	}
	if d := p.prompt("say on"); d.text != "on" {
		t.Errorf("%+v", d)
	}
}

// An agent that does not end with its input is ended by a signal.
func TestCloseOfAnAgentThatStays(t *testing.T) {
	for _, words := range []string{"", "stays", "stubborn"} {
		p := newPlace(t, words)
		p.times = times{start: hangs, cancel: hangs, grace: 50 * time.Millisecond}
		p.started(wire.Start{})
		p.must(p.client.Send(t.Context(), task.Input{Kind: task.InputCancel}))
		select {
		case <-p.driver.agent.pipe.Child.Done():
		case <-time.After(hangs):
			t.Errorf("%q lives on", words)
		}
	}
}

// What real agents say passes, whatever is in it, and in its order.
func TestReplayOfRealAgents(t *testing.T) {
	files, err := filepath.Glob("testdata/acp-*.jsonl")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlace(t)
			p.started(wire.Start{Prompt: "replay " + path})
			d := p.turn(nil)
			if d.end.StopReason != "end_turn" {
				t.Fatalf("%+v", d.end)
			}
			if got, want := folded(t, d.updates), folded(t, saidByAgent(t, path)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// folded is what updates say in all, in a form that can be compared: the journal joins
// pieces of text, and what a tool that goes on says again and again.
func folded(t *testing.T, updates []json.RawMessage) string {
	t.Helper()
	texts, tools, others := map[string]string{}, map[string]object{}, []object{}
	for _, raw := range updates {
		var u object
		if err := json.Unmarshal(raw, &u); err != nil {
			t.Fatal(err)
		}
		kind, _ := u["sessionUpdate"].(string)
		id, isTool := u["toolCallId"].(string)
		content, _ := u["content"].(map[string]any)
		switch {
		case isTool:
			if tools[id] == nil {
				tools[id] = object{}
			}
			maps.Copy(tools[id], u)
		case strings.HasSuffix(kind, "_chunk") && content["type"] == "text":
			texts[fmt.Sprint(kind, u["messageId"])] += content["text"].(string)
		default:
			others = append(others, u)
		}
	}
	if len(texts)*len(tools)*len(updates) == 0 {
		t.Fatalf("%d texts, %d tools", len(texts), len(tools))
	}
	b, err := json.MarshalIndent(object{"texts": texts, "tools": tools, "others": others}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func saidByAgent(t *testing.T, path string) []json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	for line := range strings.Lines(string(b)) {
		var l struct {
			Dir string
			Msg struct {
				Method string
				Params struct{ Update json.RawMessage }
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Dir == "from_agent" && l.Msg.Method == "session/update" {
			all = append(all, l.Msg.Params.Update)
		}
	}
	return all
}
