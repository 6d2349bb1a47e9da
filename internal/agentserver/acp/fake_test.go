//go:build unix

package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The test binary is also the agent: `BINARY fake-agent WORD...` speaks the protocol in
// raw frames. Its words say what it can and what it does wrong; a prompt says what a turn
// does. It writes what it is asked to the file of FAKE_LOG.

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "fake-agent" {
		newFake(os.Args[2:]).serve()
		return
	}
	os.Exit(m.Run())
}

type object = map[string]any

type fake struct {
	can     func(string) bool
	in      *bufio.Scanner
	log     *os.File
	session string
	logins  int
	turn    json.RawMessage // id of the prompt that waits for its end
}

func newFake(args []string) *fake {
	f := &fake{in: bufio.NewScanner(os.Stdin), can: func(word string) bool { return slices.Contains(args, word) }}
	f.in.Buffer(nil, 64<<20)
	var err error
	if f.log, err = os.OpenFile(os.Getenv("FAKE_LOG"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		panic(err)
	}
	if f.can("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	return f
}

type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Session string                  `json:"sessionId"`
		Prompt  []struct{ Text string } `json:"prompt"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (f *fake) serve() {
	for f.in.Scan() {
		var m frame
		if err := json.Unmarshal(f.in.Bytes(), &m); err != nil {
			panic(err)
		}
		fmt.Fprintf(f.log, "%s\n", f.in.Bytes())
		f.handle(m)
	}
	if f.can("stubborn") || f.can("stays") {
		select {} // some do not end with their input
	}
}

func (f *fake) handle(m frame) {
	switch m.Method {
	case "initialize":
		f.initialize(m.ID)
	case "authenticate":
		f.logins++
		f.answer(m.ID, object{})
	case "session/new":
		f.create(m.ID)
	case "session/load":
		f.load(m)
	case "session/set_mode", "session/set_model", "session/set_config_option":
		f.answer(m.ID, object{})
	case "session/cancel":
		if f.turn != nil && !f.can("stubborn") && !f.can("deaf") {
			f.end("cancelled")
		}
	case "session/prompt":
		f.turn = m.ID
		f.prompt(m.Params.Prompt[0].Text)
	case "":
		f.answered(m)
	}
}

func (f *fake) initialize(id json.RawMessage) {
	version := 1
	switch {
	case f.can("silent"):
		return
	case f.can("newer"):
		version = 2
	case f.can("no-start"):
		fmt.Fprintln(os.Stderr, "cannot find my\nconfiguration")
		os.Exit(4)
	case f.can("no-protocol"):
		fmt.Println("Welcome to the agent!")
		f.fail(id, -32601, "Method not found", nil)
		return
	}
	f.answer(id, object{
		"protocolVersion": version,
		"agentCapabilities": object{
			"loadSession": f.can("load"), "mcpCapabilities": object{"http": !f.can("no-http")},
		},
		"authMethods": []any{object{"id": "browser"}, object{"id": "openai-api-key"}},
	})
}

func (f *fake) create(id json.RawMessage) {
	if f.can("login") || f.can("key") && f.logins == 0 {
		f.fail(id, -32000, "Authentication required", nil)
		return
	}
	f.session = fmt.Sprintf("session-%d", os.Getpid())
	f.answer(id, f.offer(object{"sessionId": f.session}))
}

// offer adds the modes and models of the words.
func (f *fake) offer(result object) object {
	values := func(ids ...string) []any {
		var all []any
		for _, id := range ids {
			all = append(all, object{"value": id, "name": id})
		}
		return all
	}
	if f.can("modes") {
		result["modes"] = object{"currentModeId": "auto", "availableModes": []any{
			object{"id": "auto"}, object{"id": "default"}, "...", object{"id": "bypassPermissions"},
		}}
		result["models"] = object{"availableModels": []any{object{"modelId": "small"}, object{"modelId": "big"}}}
	}
	if f.can("options") {
		result["configOptions"] = []any{
			object{"id": "mode", "category": "mode", "type": "select", "currentValue": "auto", "options": values("auto", "default")},
			object{"id": "m", "category": "model", "type": "select", "options": []any{object{"group": "g", "options": values("small", "big")}}},
			object{"id": "effort", "category": "thought_level", "type": "select", "options": values("low", "high")},
			object{"id": "fast", "type": "boolean", "currentValue": true},
		}
	}
	return result
}

func (f *fake) load(m frame) {
	if f.can("load-fails") {
		f.fail(m.ID, -32603, "Internal error", object{"details": "Invalid session identifier"})
		return
	}
	f.session = m.Params.Session
	f.say("said before")
	f.answer(m.ID, f.offer(object{}))
}

// prompt does what the first word of the text is.
func (f *fake) prompt(text string) {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "say":
		f.say(rest)
		f.end("end_turn")
	case "stop":
		f.end(rest)
	case "die":
		f.say("last words")
		fmt.Fprintln(os.Stderr, "panic: out of luck")
		os.Exit(3)
	case "leave": // something that holds the streams open, out of reach of a signal to the group
		orphan := exec.Command("sleep", "30")
		orphan.Stdout, orphan.Stderr, orphan.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
		if err := orphan.Start(); err != nil {
			panic(err)
		}
		os.Exit(3)
	case "hang":
		f.say("hanging")
	case "fail":
		f.fail(f.turn, -32603, "Internal error", object{"details": "the model does not answer"})
	case "ask":
		f.ask(rest)
	case "noise":
		f.noise()
	case "replay":
		f.replay(rest)
	case "big":
		f.update(object{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "rawInput": object{"a": strings.Repeat("<", 2<<20)}})
		f.update(object{"sessionUpdate": "plan", "entries": strings.Repeat("x", 2<<20)})
		f.say(strings.Repeat("é", 1<<20))
		f.end("end_turn")
	case "flood":
		for i := range 3000 { // more than the library queues
			f.update(object{"sessionUpdate": "tool_call", "toolCallId": fmt.Sprint(i), "title": "x"})
		}
		f.end("end_turn")
	case "endless":
		fmt.Printf("{\"x\":\"%s\"}\n", strings.Repeat("x", maxLine))
	}
}

func (f *fake) ask(kinds string) {
	options := []any{}
	for kind := range strings.FieldsSeq(kinds) {
		options = append(options, object{"optionId": "id-" + kind, "name": kind, "kind": kind})
	}
	f.write(object{"id": "ask", "method": "session/request_permission", "params": object{
		"sessionId": f.session, "options": options,
		"toolCall": object{"toolCallId": "t1", "title": "rm -r /", "kind": "execute", "rawInput": object{"command": "rm"}},
	}})
}

// noise is what agents of the future say.
func (f *fake) noise() {
	fmt.Println("Starting the engine...")
	fmt.Println("\x1b[31m{not json\x1b[0m")
	fmt.Println(`{"jsonrpc":"2.0"}`)
	fmt.Println(`["a","list"]`)
	fmt.Println(`{"jsonrpc":"2.0","id":777,"result":{}}`)
	f.write(object{"method": "_auth/status_update", "params": object{"authStatus": object{}}})
	f.write(object{"method": "session/update", "params": "not an object"})
	f.write(object{"method": "session/update", "params": object{"sessionId": f.session, "update": object{"no": "kind"}}})
	f.update(object{"sessionUpdate": "from_the_future", "x": []int{1}})
	f.update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "image", "data": "x"}})
	f.write(object{"id": "fs", "method": "fs/read_text_file", "params": object{"path": "/etc/passwd"}})
}

// answered takes the answer to a request of ours, and ends the turn with it.
func (f *fake) answered(m frame) {
	if f.turn == nil {
		return // one of a replay
	}
	f.say(fmt.Sprintf("%s %s", m.Result, m.Error))
	f.end("end_turn")
}

// replay says what a real agent said.
func (f *fake) replay(file string) {
	lines, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(lines)) {
		var l struct {
			Dir string
			Msg json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			panic(err)
		}
		var m frame
		if err := json.Unmarshal(l.Msg, &m); err != nil {
			panic(err)
		}
		if l.Dir == "from_agent" && m.Method != "" { // answers are to requests of its own client
			fmt.Printf("%s\n", l.Msg)
		}
	}
	f.end("end_turn")
}

func (f *fake) say(text string) {
	f.update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": text}})
}

func (f *fake) update(u object) {
	f.write(object{"method": "session/update", "params": object{"sessionId": f.session, "update": u}})
}

func (f *fake) end(reason string) {
	f.answer(f.turn, object{"stopReason": reason})
	f.turn = nil
}

func (f *fake) answer(id json.RawMessage, result object) { f.write(object{"id": id, "result": result}) }

func (f *fake) fail(id json.RawMessage, code int, message string, data any) {
	f.write(object{"id": id, "error": object{"code": code, "message": message, "data": data}})
}

func (f *fake) write(m object) {
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", b)
}
