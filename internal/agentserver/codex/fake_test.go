//go:build unix

package codex

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary a fake Codex where it is started by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Name {
		os.Exit(fakeCodex(os.Getenv("FAKE_CODEX"), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// fakeEnv is the environment of an agent whose Codex is the fake, with that behaviour.
func fakeEnv(t *testing.T, behaviour string) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"PATH": dir + string(os.PathListSeparator) + os.Getenv("PATH"), "FAKE_CODEX": behaviour}
}

// fakeCodex behaves as it is told: by the name of a behaviour, or by the path of a
// transcript.
func fakeCodex(behaviour string, in io.Reader, out, errs io.Writer) int {
	f := &fake{in: bufio.NewReader(in), out: json.NewEncoder(out), version: "0.171.0", turn: "turn-1"}
	if strings.HasSuffix(behaviour, ".jsonl") {
		return f.replay(behaviour, errs)
	}
	switch behaviour {
	case "broken at start":
		fmt.Fprintln(errs, "\x1b[31mError\x1b[0m: invalid transport\nin `mcp_servers.a`")
		return 1
	case "old":
		f.version = "0.99.0"
	}
	for {
		m, err := f.read()
		if err != nil {
			return 0
		}
		if m.Method == "turn/start" {
			if code, ended := f.behave(behaviour, m, errs); ended {
				return code
			}
			continue
		}
		f.serve(behaviour, m)
	}
}

type fake struct {
	in      *bufio.Reader
	out     *json.Encoder
	version string
	turn    string
}

func (f *fake) read() (message, error) {
	line, err := f.in.ReadBytes('\n')
	var m message
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	return m, err
}

func (f *fake) result(m message, v any) {
	_ = f.out.Encode(map[string]any{"id": m.ID, "result": v})
}

func (f *fake) tell(method string, params map[string]any) {
	params["threadId"] = "thread"
	_ = f.out.Encode(map[string]any{"method": method, "params": params})
}

func (f *fake) completed(status string) {
	f.tell("turn/completed", map[string]any{"turn": map[string]any{"id": f.turn, "status": status, "items": []any{}}})
}

// serve answers everything but turns.
func (f *fake) serve(behaviour string, m message) {
	switch m.Method {
	case "initialize":
		f.result(m, map[string]string{"userAgent": "insightscli/" + f.version + " (Linux; x86_64)"})
	case "thread/start", "thread/resume":
		f.result(m, map[string]any{"thread": map[string]string{"id": "thread"}, "model": "some-model", "how": m.Method})
	case "turn/interrupt":
		if behaviour == "deaf" {
			return
		}
		f.result(m, struct{}{})
		f.completed("interrupted")
	case "initialized", "":
	default:
		f.result(m, struct{}{})
	}
}

// behave does a turn, or ends the program.
func (f *fake) behave(behaviour string, m message, errs io.Writer) (code int, ended bool) {
	f.result(m, map[string]any{"turn": map[string]string{"id": f.turn}})
	f.tell("turn/started", map[string]any{"turn": map[string]string{"id": f.turn}})
	run := map[string]any{"type": "commandExecution", "id": "call", "command": "/bin/sh -c 'sleep 1000'", "status": "inProgress"}
	switch behaviour {
	case "dies":
		f.tell("item/started", map[string]any{"turnId": f.turn, "item": run})
		fmt.Fprintln(errs, "thread 'main' panicked at core:1")
		return 101, true
	case "long line":
		_, _ = fmt.Fprintln(os.Stdout, strings.Repeat("x", maxLine+1))
		_, _ = io.Copy(io.Discard, f.in)
		return 0, true
	case "deaf", "waits":
		f.tell("item/started", map[string]any{"turnId": f.turn, "item": run})
	case "unknown request":
		_ = f.out.Encode(map[string]any{"id": "a", "method": "item/new/thing", "params": struct{}{}})
		reply, _ := f.read()
		text := "no error"
		if reply.Error != nil {
			text = reply.Error.Message
		}
		f.tell("item/completed", map[string]any{"turnId": f.turn, "item": map[string]string{"type": "agentMessage", "id": "m", "text": text}})
		f.completed("completed")
	case "noise":
		_, _ = fmt.Fprintln(os.Stdout, "not JSON at all")
		f.tell("item/started", map[string]any{"turnId": f.turn, "item": map[string]string{"type": "fromTheFuture", "id": "x"}})
		f.tell("some/thing", map[string]any{"error": 3})
		f.tell("turn/completed", map[string]any{"turn": map[string]string{"id": "another", "status": "failed"}})
		f.completed("completed")
	default:
		f.completed(behaviour)
	}
	return 0, false
}

// replay plays a transcript: it waits for what the driver said then, and says what Codex
// said. Answers of Codex that the transcript leaves out it makes itself.
func (f *fake) replay(path string, errs io.Writer) int {
	b, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	var frames []struct {
		Dir string
		Msg message
	}
	for line := range strings.Lines(string(b)) {
		frames = append(frames, struct {
			Dir string
			Msg message
		}{})
		if err := json.Unmarshal([]byte(line), &frames[len(frames)-1]); err != nil {
			fmt.Fprintln(errs, err)
			return 1
		}
	}
	ids := map[string]json.RawMessage{} // of the driver's requests, by those of the transcript
	for i, frame := range frames {
		m := frame.Msg
		if frame.Dir == "from_agent" {
			if m.Method == "" {
				m.ID = ids[string(m.ID)]
			}
			_ = f.out.Encode(m)
			continue
		}
		said, err := f.read()
		for err == nil && said.Method == "thread/backgroundTerminals/clean" {
			f.result(said, struct{}{})
			said, err = f.read()
		}
		if err != nil {
			return 0
		}
		if said.Method != m.Method {
			fmt.Fprintf(errs, "frame %d: %s, not %s\n", i, said.Method, m.Method)
			return 1
		}
		ids[string(m.ID)] = said.ID
		if m.Method != "turn/start" || frames[i+1].Msg.Method == "" {
			continue
		}
		for _, later := range frames[i+1:] {
			var p struct {
				TurnID string `json:"turnId"`
			}
			if _ = json.Unmarshal(later.Msg.Params, &p); p.TurnID != "" {
				f.result(said, map[string]any{"turn": map[string]string{"id": p.TurnID}})
				break
			}
		}
	}
	_, _ = io.Copy(io.Discard, f.in)
	return 0
}
