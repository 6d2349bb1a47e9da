package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// recorded makes a state directory with one run whose log has the given events.
func recorded(t *testing.T, events ...task.Event) (*app, *state, journal.Record, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	streams, _, out, _ := term.Test()
	a := newApp(Process{Streams: streams, Dir: dir})
	a.state = &state{dir: dir, db: db, store: journal.New(db.DB, dir)}
	spec := task.Spec{V: 1, Task: task.NewID(), Run: task.NewID(), Team: 1, Agent: task.Agent{Name: "exec"}, Provider: "local"}
	if err := a.state.store.Create(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := a.state.store.Run(t.Context(), spec.Run)
	if err != nil {
		t.Fatal(err)
	}
	log, err := a.state.store.OpenLog(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	for i, ev := range events {
		ev.Seq = uint64(i + 1)
		if err := log.Append(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return a, a.state, rec, out
}

func said(text string, continued bool) task.Event {
	return task.Event{At: time.Now(), Kind: task.KindOutput, Params: task.AppendOutput(nil, task.Stdout, []byte(text), continued)}
}

func noticed(text string) task.Event {
	b, _ := json.Marshal(task.Notice{Level: "info", Message: text})
	return task.Event{At: time.Now(), Kind: task.KindNotice, Params: b}
}

func TestTailCutsInsideAnEvent(t *testing.T) {
	a, s, rec, _ := recorded(t, said("1\n2\n3\n4\n", false), noticed("between"), said("5\n6", true), said("66\n7\n", false),
		task.Event{At: time.Now(), Kind: task.KindOutput, Params: []byte(`{"exitCode":1}`)})
	for tail, want := range map[int]string{
		0: "", 1: "7\n", 2: "666\n7\n", 3: "5\n666\n7\n", 4: "5\n666\n7\n", 5: "4\n5\n666\n7\n", 7: "2\n3\n4\n5\n666\n7\n", 100: "1\n2\n3\n4\n5\n666\n7\n",
	} {
		o := &logsOptions{app: a, tail: tail}
		var got strings.Builder
		err := o.printer(s, rec, logStreams{out: &got, err: io.Discard}).print(t.Context())
		if err != nil || got.String() != want {
			t.Errorf("--tail %d: %q, want %q (%v)", tail, got.String(), want, err)
		}
	}
}

func TestLogsPrintsStoredLinesUntouched(t *testing.T) {
	a, s, rec, out := recorded(t, said("a\x00\xff\n", false), noticed("x"))
	var want bytes.Buffer
	err := s.store.ReadLog(t.Context(), rec, 0, func(line []byte, _ task.Event) error {
		want.Write(line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := runLogsIn(t.Context(), a, rec, &logsOptions{json: true}); err != nil || out.String() != want.String() {
		t.Errorf("%q, want %q (%v)", out, want.String(), err)
	}
	out.Reset()
	if err := runLogsIn(t.Context(), a, rec, &logsOptions{raw: true}); err != nil || out.String() != "a\x00\xff\n" {
		t.Errorf("%q (%v)", out, err)
	}
}

// What was asked for by its kind is shown, although it is no news, and ends its line.
func TestLogsOfAKind(t *testing.T) {
	event := func(kind task.Kind, params string) task.Event {
		return task.Event{At: time.Now(), Kind: kind, Params: []byte(params)}
	}
	a, _, rec, out := recorded(t,
		event(task.KindAgent, `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"so"}}}`),
		event(task.KindUsage, `{"model":"m","request":{"requests":1,"input_tokens":2}}`),
		event(task.KindTurn, `{"turn":3,"ok":true,"text":"so","attempts":1}`))
	errOut := &bytes.Buffer{}
	a.streams.Err = errOut
	for kind, want := range map[string]string{"agent": "so\n|", "usage": "|usage: m: 1 request, 2 tokens in, 0 out, $0.0000\n", "turn": "|turn: 3 is done\n", "": "so\n|"} {
		o := &logsOptions{}
		if kind != "" {
			o.chosen.kinds = []string{kind}
		}
		out.Reset()
		errOut.Reset()
		if err := runLogsIn(t.Context(), a, rec, o); err != nil || out.String()+"|"+errOut.String() != want {
			t.Errorf("%s: %q, %q (%v), want %q", kind, out, errOut, err, want)
		}
	}
}

// runLogsIn runs logs on a run that nobody carries out.
func runLogsIn(ctx context.Context, a *app, rec journal.Record, o *logsOptions) error {
	o.app, o.tail = a, -1
	if err := o.validate(time.Now()); err != nil {
		return err
	}
	return o.print(ctx, a.state, rec)
}

func TestLogsOptions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		o    logsOptions
		from time.Time
		ok   bool
	}{
		{logsOptions{tail: -1}, time.Time{}, true},
		{logsOptions{tail: -1, chosen: chosenEvents{since: "1h"}}, now.Add(-time.Hour), true},
		{logsOptions{tail: -1, chosen: chosenEvents{since: "2026-01-02T03:00:00Z"}}, now.Add(-4*time.Minute - 5*time.Second), true},
		{logsOptions{tail: -1, chosen: chosenEvents{since: "-1h"}}, time.Time{}, false},
		{logsOptions{tail: -2}, time.Time{}, false},
		{logsOptions{tail: 5, serverLog: true}, time.Time{}, false},
		{logsOptions{tail: -1, chosen: chosenEvents{kinds: []string{"output", "finished"}}}, time.Time{}, true},
		{logsOptions{tail: -1, chosen: chosenEvents{kinds: []string{"outputs"}}}, time.Time{}, false},
	} {
		err := tt.o.validate(now)
		if (err == nil) != tt.ok || tt.ok && !tt.o.chosen.filter.From.Equal(tt.from) {
			t.Errorf("%s: %v, from %v", fmt.Sprintf("%+v", tt.o), err, tt.o.chosen.filter.From)
		}
	}
}
