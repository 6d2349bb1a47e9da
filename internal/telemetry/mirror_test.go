package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// mirrorRun are events of every form that an entry can have.
func mirrorRun() []task.Event {
	code := 3
	r := &told{}
	r.step("clone", task.StepCompleted)
	r.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": "Hello "}})
	r.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": "world"}})
	r.update(map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]string{"type": "text", "text": "hm"}})
	r.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "status": "pending"})
	r.update(map[string]any{"sessionUpdate": "plan", "entries": []string{"a"}})
	r.add(task.KindNotice, "", task.Notice{Level: "warn", Message: "careful"})
	r.add("error", "_insights/error", map[string]string{"message": "it broke"})
	r.add(task.KindOutput, "", task.Output{Stdout: "out\n", Lines: 1})
	r.add(task.KindOutput, "", task.Output{ExitCode: &code})
	r.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": "Bye"}})
	r.add("turn_complete", "_insights/turn_complete", map[string]string{"stopReason": "end_turn"})
	return r.all
}

func TestEntriesOfTheMirror(t *testing.T) {
	m := &mirror{}
	var got []string
	for _, ev := range mirrorRun() {
		for _, e := range m.event(ev) {
			got = append(got, fmt.Sprintf("%d %s %s: %s", e.severity, e.method, e.update, e.body))
		}
	}
	want := []string{
		`9 _insights/progress : {"step":"clone","status":"completed","label":"canary text","group":"setup","detail":"canary text"}`,
		"9 session/update agent_message: [agent_message] Hello world",
		"9 session/update agent_thought_chunk: [agent_thought_chunk] hm",
		"9 session/update tool_call: [tool_call] ls (pending)",
		`9 session/update plan: {"update":{"entries":["a"],"sessionUpdate":"plan"}}`,
		"13 _insights/console : careful",
		"17 _insights/error : it broke",
		"9 _insights/sandbox_output : [sandbox_output] out\n",
		"9 _insights/sandbox_output : [sandbox_output exit=3]",
		"9 session/update agent_message: [agent_message] Bye",
		"9 _insights/turn_complete : [turn_end] end_turn",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// mirrorOnly is a run of which only the log is told.
func mirrorOnly(t *testing.T, url string) (Options, *lockedBuffer) {
	o := options(t, url)
	o.LogsToken, o.Spec.Telemetry.LogsURL = secret.String{}, ""
	lines := &lockedBuffer{}
	o.Lines = lines
	return o, lines
}

// The mirror writes a line and a record for every entry, each with its own bounds.
func TestMirror(t *testing.T) {
	s := newServer(t, nil)
	o, lines := mirrorOnly(t, s.URL)
	r := begin(t, o)
	events := mirrorRun()
	long := &told{all: events}
	long.add(task.KindNotice, "", task.Notice{Level: "info", Message: strings.Repeat("ü", 70000)})
	for _, ev := range long.all {
		r.Emit(ev)
	}
	r.Close()
	records := s.got(t, "/mirror/v1/logs")
	wrote := strings.Split(strings.TrimSpace(lines.b.String()), "\n")
	if len(records) != 12 || len(wrote) != 12 {
		t.Fatalf("%d records, %d lines", len(records), len(wrote))
	}
	first, last := attrs(records[0]), records[11]["body"].(map[string]any)["stringValue"].(string)
	if records[0]["traceId"] != traceID(o.Spec.Run) || first["task_run_id"] != string(o.Spec.Run) || first["acp_method"] != "_insights/progress" ||
		first["origin_product"] != "signals_scout" || first["team_id"] != "3" || first["entry_timestamp"] != "2026-11-29T12:00:00.000000Z" ||
		records[0]["timeUnixNano"] != nano(began()) {
		t.Errorf("record %v", records[0])
	}
	if utf8.RuneCountInString(last) != maxMirrored {
		t.Errorf("a body of %d characters", utf8.RuneCountInString(last))
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(wrote[5]), &line); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"event": "task_run_log", "level": "warn", "request_id": string(o.Spec.Run), "task_run_id": string(o.Spec.Run), "task_id": string(o.Spec.Task),
		"team_id": 3.0, "origin_product": "signals_scout", "body": "careful", "acp_method": "_insights/console", "entry_timestamp": "2026-11-29T12:00:06.000000Z",
	}
	if fmt.Sprint(line) != fmt.Sprint(want) {
		t.Errorf("line %v", line)
	}
	if err := json.Unmarshal([]byte(wrote[11]), &line); err != nil || utf8.RuneCountInString(line["body"].(string)) != maxLine {
		t.Errorf("a body of %d characters, %v", len(line["body"].(string)), err)
	}
}

// Of a flood the mirror takes a batch at a time, and says how much it left out.
func TestMirrorOfAFlood(t *testing.T) {
	s := newServer(t, nil)
	o, lines := mirrorOnly(t, s.URL)
	r := begin(t, o)
	for _, ev := range flood(5 * mirrorMost) {
		r.Emit(ev)
	}
	r.Close()
	records := s.got(t, "/mirror/v1/logs")
	n, wrote := len(records), strings.Count(lines.b.String(), "\n")
	if n > 5*mirrorMost/2 || wrote > 5*mirrorMost/2 || n < mirrorMost || wrote < mirrorMost {
		t.Errorf("%d records, %d lines", n, wrote)
	}
	body := records[n-1]["body"].(map[string]any)["stringValue"].(string)
	if records[n-1]["severityNumber"] != 13.0 || !strings.Contains(body, "entries of the log were not mirrored") ||
		!strings.Contains(lines.b.String(), `"level":"warn"`) {
		t.Errorf("last record %v", records[n-1])
	}
	if r.Report().Dropped == 0 || !strings.Contains(r.Lost(), "the log mirror: ") {
		t.Errorf("%+v, %q", r.Report(), r.Lost())
	}
}

func flood(n int) []task.Event {
	r := &told{}
	for i := range n {
		r.add(task.KindNotice, "", task.Notice{Level: "info", Message: fmt.Sprint("line ", i)})
	}
	return r.all
}

// A process that takes a run over writes no lines of what was before.
func TestLinesAreLive(t *testing.T) {
	o, lines := mirrorOnly(t, "")
	o.Spec.Telemetry.MirrorURL = ""
	r := begin(t, o)
	all := mirrorRun()
	for _, ev := range all[:7] {
		r.Replay(ev)
	}
	r.Emit(all[7])
	r.Close()
	if got := lines.b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "it broke") {
		t.Errorf("%s", got)
	}
}

func TestMembers(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"b":"x","c":{"d":[1,"}]\""]},"e":null}`: `a=1 b="x" c={"d":[1,"}]\""]} e=null`,
		` { "a" : "\\" , "b\u0041" : [ ] } `:            `a="\\" bA=[ ]`,
		`{}`:                                            "", ``: "", `[]`: "", `{"a"`: "", `{"a":`: "a=", `{"a":"x`: `a="x`, `{"a":{"b":1`: `a={"b":1`, `{"a":}`: "a=",
	} {
		var got []string
		members([]byte(in), func(key string, v []byte) { got = append(got, key+"="+strings.TrimRight(string(v), " ")) })
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

// What members finds in an object is what a decoder finds there.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":"x\"\\","c":{"d":[1,"}]"]},"e":null}`))
	f.Add([]byte(`{"a":"\\\\\"`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got := map[string]string{}
		members(in, func(key string, v []byte) { got[key] = string(bytes.TrimSpace(v)) })
		var want map[string]json.RawMessage
		if json.Unmarshal(in, &want) != nil || want == nil {
			return
		}
		for key, v := range want {
			if len(key) < maxShort/6 && got[key] != string(bytes.TrimSpace(v)) {
				t.Errorf("%q is %q, want %q", key, got[key], v)
			}
		}
	})
}

func TestBeginningOfALongString(t *testing.T) {
	for _, piece := range []string{"a", "é", `\"`, "\u0001", "😀", `\\`} {
		b, err := json.Marshal(strings.Repeat(piece, 5000))
		if err != nil {
			t.Fatal(err)
		}
		got := beginning(b, 100)
		if len(got) < 50 || !strings.HasPrefix(strings.Repeat(piece, 5000), strings.TrimRight(got, "\uFFFD")) {
			t.Errorf("%q: %q", piece, got)
		}
	}
	if beginning([]byte("["+strings.Repeat("1,", 5000)+"1]"), 100) != "" {
		t.Error("a list is taken for a string")
	}
}
