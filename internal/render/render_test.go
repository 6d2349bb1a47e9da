package render_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

const run = task.ID("1a2b3c4d-0000-4000-8000-000000000000")

// story makes numbered events of one run, a second apart.
type story struct{ events []task.Event }

func (s *story) add(kind task.Kind, params any) {
	raw, ok := params.(string)
	if !ok {
		b, err := json.Marshal(params)
		if err != nil {
			panic(err)
		}
		raw = string(b)
	}
	n := len(s.events) + 1
	s.events = append(s.events, task.Event{
		Run: run, Seq: uint64(n), Kind: kind, Params: json.RawMessage(raw),
		At: time.Date(2026, 11, 29, 12, 0, n, 0, time.UTC),
	})
}

func (s *story) output(stream task.Stream, data string, continued bool) {
	s.add(task.KindOutput, string(task.AppendOutput(nil, stream, []byte(data), continued)))
}

// everything is a run in which each kind of event occurs.
func everything() []task.Event {
	s := &story{}
	step := func(name, status, label, detail string) {
		s.add(task.KindStep, task.Step{Step: name, Status: status, Label: label, Group: "setup", Detail: detail})
	}
	step("sandbox", task.StepInProgress, "Setting up sandbox", "")
	step("sandbox", task.StepCompleted, "Set up sandbox", "")
	step("clone", task.StepInProgress, "Cloning repository", "")
	step("clone", task.StepCompleted, "Cloned repository", "org/repo at 0123abc")
	s.add(task.KindNotice, task.Notice{Level: "warn", Message: "no cgroups:\nlimits are rlimits"})
	s.output(task.Stdout, "one\ntwo\n", false)
	s.output(task.Stderr, "oops \x1b[31mred\x1b[0m\n", false)
	s.output(task.Stdout, "a long ", true)
	s.output(task.Stdout, "line\n", false)
	s.output(task.Stdout, "10%\r20%\r\n", false)
	s.output(task.Stdout, "\xff\x00raw\n", false)
	s.output(task.Stdout, "no line end", true)
	s.add(task.KindOutput, `{"exitCode":3}`)
	s.add(task.KindAgent, `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Looking.\n"}}}`)
	s.add(task.KindAgent, `{"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}`)
	s.add(task.KindAgent, `{"update":{"sessionUpdate":"tool_call","title":"Read go.mod\u001b]0;evil\u0007","status":"pending"}}`)
	s.add(task.KindPermission, `{"toolCall":{"title":"rm -rf build"}}`)
	s.add(task.KindDenied, task.Denied{Host: "example.test", Port: 443, Count: 1, Reason: "no rule allows it", Rule: "example.test"})
	s.add(task.KindDenied, task.Denied{Host: "example.test\x1b[2J", Count: 3, Reason: "no rule allows it"})
	s.add(task.KindPublished, task.Published{Org: "org", Name: "repo", Branch: "fix", SHA: "0123456789abcdef", URL: "https://github.com/org/repo/commit/0123456789abcdef"})
	s.add(task.KindPublished, task.Published{Org: "org", Name: "repo", Branch: "fix", Pull: 7, URL: "https://github.com/org/repo/pull/7"})
	s.add(task.KindUsage, `{"used":1}`)
	s.add("later", `{"x":1}`)
	step("pr", task.StepFailed, "Opening pull request", "no token")
	code := 3
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	s.add(task.KindFinished, task.Result{
		Run: run, State: task.StateFailed, Code: 7, ExitCode: &code, Kind: "task_failed", Error: "the command exited with code 3",
		Started: start, Finished: start.Add(1234 * time.Millisecond),
		Repos:     []task.RepoResult{{Org: "org", Name: "repo", Files: 2, Insertions: 10, Deletions: 1}, {Org: "org", Name: "other"}},
		Denied:    []task.Denied{{Host: "example.test", Port: 443, Count: 1}, {Host: "a.test", Count: 3}, {Host: "b.test", Count: 1}, {Host: "c.test", Count: 1}},
		Published: []task.Published{{Org: "org", Name: "repo", Branch: "fix", Pull: 7, URL: "https://github.com/org/repo/pull/7"}},
	})
	return s.events
}

// golden compares got with a file of testdata; UPDATE_GOLDEN=1 writes it instead.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; UPDATE_GOLDEN=1 writes it anew. Got:\n%s", path, got)
	}
}

// emit returns what a Text with these options writes, in one stream as a terminal
// shows it, each write to the error stream marked.
func emit(o render.Options, events []task.Event) (stdout, stderr, both string) {
	var out, err, all bytes.Buffer
	t := render.NewText(io.MultiWriter(&out, &all), io.MultiWriter(&err, &all), o)
	for _, ev := range events {
		t.Emit(ev)
	}
	return out.String(), err.String(), all.String()
}

func TestGoldenJSONL(t *testing.T) {
	var b bytes.Buffer
	j := render.NewJSONL(&b)
	for _, ev := range everything() {
		j.Emit(ev)
	}
	golden(t, "everything.jsonl", b.Bytes())
	for line := range strings.Lines(b.String()) {
		if _, err := task.ParseLine([]byte(line)); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
}

func TestGoldenText(t *testing.T) {
	tests := []struct {
		name string
		o    render.Options
	}{
		{"pipe", render.Options{}},
		{"terminal", render.Options{OutTTY: true, ErrTTY: true}},
		{"colour", render.Options{OutTTY: true, ErrTTY: true, Color: true}},
		{"dumb", render.Options{OutTTY: true, ErrTTY: true, Dumb: true}},
		{"quiet", render.Options{OutTTY: true, ErrTTY: true, Quiet: true}},
		{"run", render.Options{ReasonFollows: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, both := emit(tt.o, everything())
			golden(t, tt.name+".txt", []byte(both))
		})
	}
}

// In a pipe the bytes of the command are data: not one of them may change.
func TestPipeGetsTheBytesAsTheyWere(t *testing.T) {
	s := &story{}
	s.output(task.Stdout, "\x1b[31m\x00\xff\r", true)
	s.output(task.Stdout, "x\n", false)
	stdout, stderr, _ := emit(render.Options{}, s.events)
	if stdout != "\x1b[31m\x00\xff\rx\n" || stderr != "" {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
}

func TestRawPassesAllToATerminal(t *testing.T) {
	s := &story{}
	s.output(task.Stdout, "\x1bc\a\n", false)
	if stdout, _, _ := emit(render.Options{OutTTY: true, Raw: true}, s.events); stdout != "\x1bc\a\n" {
		t.Errorf("stdout %q", stdout)
	}
}

// A character that two pieces share is whole again on the terminal.
func TestCharacterCutInTwo(t *testing.T) {
	s := &story{}
	s.output(task.Stdout, "caf\xc3", true)
	s.output(task.Stdout, "\xa9\n", false)
	if stdout, _, _ := emit(render.Options{OutTTY: true}, s.events); stdout != "café\n" {
		t.Errorf("stdout %q", stdout)
	}
}

func TestBrokenPayloadIsShownNotFatal(t *testing.T) {
	s := &story{}
	for _, kind := range []task.Kind{task.KindOutput, task.KindStep, task.KindAgent, task.KindNotice, task.KindDenied, task.KindPermission, task.KindFinished} {
		s.add(kind, `{"stdout":7,"step":7,"update":7,"level":7,"run":7}`)
	}
	emit(render.Options{}, s.events)
}

type failing struct{ n int }

func (f *failing) Write([]byte) (int, error) { f.n++; return 0, errors.New("full") }

func TestSinksStopAtTheFirstError(t *testing.T) {
	for _, sink := range []func(io.Writer) interface {
		task.Sink
		Err() error
	}{
		func(w io.Writer) interface {
			task.Sink
			Err() error
		} {
			return render.NewJSONL(w)
		},
		func(w io.Writer) interface {
			task.Sink
			Err() error
		} {
			return render.NewText(w, io.Discard, render.Options{})
		},
	} {
		w := &failing{}
		s := sink(w)
		for _, ev := range everything() {
			s.Emit(ev)
		}
		if w.n != 1 || s.Err() == nil {
			t.Errorf("%T: %d writes, err %v", s, w.n, s.Err())
		}
	}
}

func TestFinal(t *testing.T) {
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	base := task.Result{Run: run, State: task.StateCompleted, Started: start, Finished: start.Add(80 * time.Millisecond)}
	with := func(change func(*task.Result)) task.Result { r := base; change(&r); return r }
	tests := []struct {
		r    task.Result
		want string
	}{
		{base, "completed in 80ms, run 1a2b3c4d"},
		{with(func(r *task.Result) { r.IdleEnd = true; r.Finished = start.Add(31 * time.Minute) }), "completed for lack of activity in 31m0s, run 1a2b3c4d"},
		{with(func(r *task.Result) { r.State = task.StateCancelled }), "cancelled in 80ms, run 1a2b3c4d"},
		{with(func(r *task.Result) { r.State, r.WallClockEnd = task.StateFailed, true }), "ended by its time limit in 80ms, run 1a2b3c4d"},
		{with(func(r *task.Result) { r.State, r.Kind, r.Error = task.StateFailed, "unavailable", "x" }), "failed in 80ms, run 1a2b3c4d"},
		{with(func(r *task.Result) { r.Sandbox, r.Cleanup = "s", "container s: busy" }), "completed in 80ms, run 1a2b3c4d\nleft behind: container s: busy"},
		{with(func(r *task.Result) { r.Sandbox = "s" }), "completed in 80ms, run 1a2b3c4d\nsandbox kept: insightscli exec 1a2b3c4d -- sh"},
		{
			with(func(r *task.Result) { r.Repos = []task.RepoResult{{Org: "o", Name: "r", Files: 1, Insertions: 2}} }),
			"completed in 80ms, run 1a2b3c4d\no/r: 1 file changed, +2 -0: insightscli diff 1a2b3c4d",
		},
		{
			with(func(r *task.Result) { r.Repos = []task.RepoResult{{Org: "o", Name: "r", Error: "too large"}} }),
			"completed in 80ms, run 1a2b3c4d\no/r: changes could not be taken out: too large",
		},
		{
			with(func(r *task.Result) { r.Usage = &task.Tokens{Requests: 1, Input: 2} }),
			"completed in 80ms, run 1a2b3c4d\nmodels: 1 request, 2 tokens in, 0 out, $0.0000",
		},
		{
			with(func(r *task.Result) { r.Usage = &task.Tokens{Requests: 2, Unpriced: 1} }),
			"completed in 80ms, run 1a2b3c4d\nmodels: 2 requests, 0 tokens in, 0 out, $0.0000 and 1 request of unknown price",
		},
	}
	for _, tt := range tests {
		if got := strings.Join(render.Final(tt.r), "\n"); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	line := strings.Repeat("x", 99) + "\n"
	data := []byte(strings.Repeat(line, (64<<10)/len(line)))
	ev := task.Event{Run: run, Seq: 1, Kind: task.KindOutput, Params: task.AppendOutput(nil, task.Stdout, data, false)}
	sinks := map[string]task.Sink{
		"jsonl":    render.NewJSONL(io.Discard),
		"pipe":     render.NewText(io.Discard, io.Discard, render.Options{}),
		"terminal": render.NewText(io.Discard, io.Discard, render.Options{OutTTY: true}),
	}
	for name, sink := range sinks {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				sink.Emit(ev)
			}
		})
	}
}

// Whoever has stopped reading the output is not told about the run either.
func TestNothingIsToldToNobody(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	for _, ev := range everything() {
		if ev.Kind != task.KindStep && ev.Kind != task.KindFinished {
			continue
		}
		if _, stderr, _ := emit(render.Options{Gone: gone}, []task.Event{ev}); stderr != "" {
			t.Errorf("stderr %q", stderr)
		}
	}
}
