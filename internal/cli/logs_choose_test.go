package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
)

func event(kind task.Kind, params string) task.Event {
	return task.Event{At: time.Now(), Kind: kind, Params: []byte(params)}
}

func toolEvent(update string) task.Event { return event(task.KindAgent, `{"update":`+update+`}`) }

// aDay is a log with something of everything that can be asked for.
func aDay() []task.Event {
	early := said("an early ERROR\n", false)
	early.At = time.Now().Add(-3 * time.Hour)
	return []task.Event{
		early,
		event(task.KindStep, `{"step":"agent","status":"in_progress","label":"Starting agent","group":"setup"}`),
		toolEvent(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Run: go test ./...","kind":"execute"}`),
		toolEvent(`{"sessionUpdate":"tool_call","toolCallId":"2","title":"Read main.go","kind":"read"}`),
		toolEvent(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"completed"}`),
		toolEvent(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"FAIL parser\nmore"}}]}`),
		toolEvent(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The test "}}`),
		toolEvent(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"fails.\nI look."}}`),
		event(task.KindNotice, `{"level":"warn","message":"slow"}`),
		event(task.KindDenied, `{"host":"example.com","port":443,"count":1,"reason":"not allowed"}`),
		said("one\n\x1b[31mERR\x1b[0mOR two\nthree\n", false),
		said("half an ER", true), said("ROR\nwhole\n", false),
		event(task.KindFinished, `{"state":"failed","code":7,"kind":"task_failed","error":"exit code 1","started":"2026-01-02T03:04:05Z","finished":"2026-01-02T03:04:06Z"}`),
	}
}

func TestLogsChoose(t *testing.T) {
	a, _, rec, out := recorded(t, aDay()...)
	errOut := a.streams.Err.(*bytes.Buffer)
	for _, tt := range []struct {
		name    string
		c       chosenEvents
		out, er string
	}{
		{"tool by kind", chosenEvents{tools: []string{"execute"}}, "", "* Run: go test ./...\n* failed: Run: go test ./...: FAIL parser\n"},
		{"tool by title", chosenEvents{tools: []string{"MAIN.go"}}, "", "* Read main.go\n* done: Read main.go\n"},
		{"no tool", chosenEvents{tools: []string{"fetch"}}, "", ""},
		{
			"warn",
			chosenEvents{severity: "warn"},
			"",
			"* failed: Run: go test ./...: FAIL parser\nwarning: slow\ndenied: example.com:443: not allowed\ntask failed (exit code 1) in 1s, run \n",
		},
		{"error", chosenEvents{severity: "error", kinds: []string{"agent"}}, "", "* failed: Run: go test ./...: FAIL parser\n"},
		{"grep", chosenEvents{grep: "ERROR"}, "an early ERROR\n\x1b[31mERR\x1b[0mOR two\nhalf an ERROR\n", ""},
		{"grep words", chosenEvents{grep: "(?i)test fails"}, "The test fails.\n", ""},
		{"since", chosenEvents{since: "1h", grep: "ERROR", kinds: []string{"output"}}, "\x1b[31mERR\x1b[0mOR two\nhalf an ERROR\n", ""},
		{"until", chosenEvents{until: "1h", grep: "ERROR"}, "an early ERROR\n", ""},
		{"and", chosenEvents{tools: []string{"execute", "read"}, severity: "error", grep: "parser"}, "", "* failed: Run: go test ./...: FAIL parser\n"},
	} {
		out.Reset()
		errOut.Reset()
		if err := runLogsIn(t.Context(), a, rec, &logsOptions{chosen: tt.c}); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.out || errOut.String() != tt.er {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, out, errOut, tt.out, tt.er)
		}
	}
}

// With --json the lines of the chosen events are untouched; a match that goes on in the
// next piece is found there.
func TestLogsChooseJSON(t *testing.T) {
	a, _, rec, out := recorded(t, aDay()...)
	if err := runLogsIn(t.Context(), a, rec, &logsOptions{json: true, chosen: chosenEvents{grep: "ERROR"}}); err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for line := range strings.Lines(out.String()) {
		ev, err := task.ParseLine([]byte(line))
		if err != nil || !json.Valid([]byte(line)) {
			t.Fatal(err)
		}
		seqs = append(seqs, ev.Seq)
	}
	if fmt.Sprint(seqs) != "[1 11 13]" {
		t.Errorf("events %v", seqs)
	}
	out.Reset()
	if err := runLogsIn(t.Context(), a, rec, &logsOptions{raw: true, chosen: chosenEvents{grep: "^(whole|one)$"}}); err != nil || out.String() != "one\nwhole\n" {
		t.Errorf("raw: %q (%v)", out, err)
	}
}

func TestLogsLastMatches(t *testing.T) {
	a, s, rec, out := recorded(t, aDay()...)
	o := &logsOptions{app: a, tail: 2, chosen: chosenEvents{grep: "ERROR"}}
	if err := o.validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := o.print(t.Context(), s, rec); err != nil || out.String() != "\x1b[31mERR\x1b[0mOR two\nhalf an ERROR\n" {
		t.Errorf("%q (%v)", out, err)
	}
}

func TestLinesAreWhole(t *testing.T) {
	for _, tt := range []struct {
		l    lineWriter
		in   []string
		want string
	}{
		{lineWriter{prefix: "a | "}, []string{"one\ntw", "o\n\nthree"}, "a | one\na | two\na | \na | three\n"},
		{lineWriter{prefix: "a | "}, []string{"10 %\r\x1b[K20 %\n"}, "a | 20 %\n"},
		{lineWriter{prefix: "a | "}, []string{"\x1b[31mred\n"}, "a | \x1b[31mred\x1b[0m\n"},
		{lineWriter{match: regexp.MustCompile("o$")}, []string{"one\ntw", "o\nno"}, "two\nno\n"},
	} {
		var out bytes.Buffer
		tt.l.w = &out
		for _, s := range tt.in {
			if n, err := tt.l.Write([]byte(s)); n != len(s) || err != nil {
				t.Fatal(n, err)
			}
		}
		if tt.l.flush(); out.String() != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, out.String(), tt.want)
		}
	}
}

// A line of any length is held in bounded memory.
func TestLongLine(t *testing.T) {
	var out bytes.Buffer
	l := lineWriter{w: &out, match: regexp.MustCompile("needle")}
	block := bytes.Repeat([]byte("x"), 64<<10)
	for range 100 {
		if _, err := l.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Write([]byte("needle\n")); err != nil || !strings.HasSuffix(out.String(), "needle\n") || cap(l.held) > 4*maxHeldLine {
		t.Errorf("%d bytes written, %d held (%v)", out.Len(), cap(l.held), err)
	}
}

// Runs that are over are told in the order in which things happened, also with the last
// lines of each only.
func TestLogsOfSeveralRuns(t *testing.T) {
	at := func(sec int, text string) task.Event {
		ev := said(text+"\n", false)
		ev.At = time.Date(2026, 1, 2, 3, 4, sec, 0, time.UTC)
		return ev
	}
	a, s, one, out := recorded(t, at(1, "first"), at(3, "third"), at(5, "fifth"))
	spec := one.Spec
	spec.Run, spec.Task = task.NewID(), task.NewID()
	two := one
	two.Spec = spec
	if err := s.store.Create(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	log, err := s.store.OpenLog(t.Context(), two)
	if err != nil {
		t.Fatal(err)
	}
	for i, ev := range []task.Event{at(2, "second"), at(4, "fourth")} {
		ev.Seq = uint64(i + 1)
		if err := log.Append(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	x, y := one.Spec.Run.Short(), two.Spec.Run.Short()
	for tail, want := range map[int]string{
		-1: x + " | first\n" + y + " | second\n" + x + " | third\n" + y + " | fourth\n" + x + " | fifth\n",
		1:  y + " | fourth\n" + x + " | fifth\n",
	} {
		out.Reset()
		o := &logsOptions{app: a, tail: tail, runs: []string{string(one.Spec.Run), string(two.Spec.Run)}}
		if err := o.printAll(t.Context(), s, []journal.Record{one, two}); err != nil || out.String() != want {
			t.Errorf("--tail %d: %q, want %q (%v)", tail, out, want, err)
		}
	}
}
