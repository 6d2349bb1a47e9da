package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// keeper is a process that has a session: it answers what is said to it.
type keeper struct {
	t     *testing.T
	store *journal.Store
	rec   journal.Record
	log   *journal.Log
	said  []task.Input
	done  chan struct{}
}

// tell writes an event.
func (k *keeper) tell(kind task.Kind, payload any) {
	raw, err := json.Marshal(payload)
	seq, _ := k.log.Last()
	err = errors.Join(err, k.log.Append(task.Event{Run: k.rec.Spec.Run, Seq: seq + 1, At: time.Now(), Kind: kind, Params: raw}), k.log.Sync())
	if err != nil {
		k.t.Error(err)
	}
}

// keep answers until somebody ends the session.
func (k *keeper) keep() {
	defer close(k.done)
	ctx := k.t.Context()
	for ctx.Err() == nil {
		queued, err := k.store.Inputs(ctx, k.rec.Spec.Run)
		if err != nil {
			return
		}
		for _, in := range queued {
			k.said = append(k.said, in.Input)
			if in.Kind == task.InputEnd {
				k.end(task.Result{Run: k.rec.Spec.Run, State: task.State(in.Value), Error: in.Text})
				return
			}
			k.answer(in.Input)
			if err := k.store.TakeInput(ctx, k.rec.Spec.Run, in.N); err != nil && ctx.Err() == nil {
				k.t.Error(err)
			}
		}
		if pause(ctx, 10*time.Millisecond) != nil {
			return
		}
	}
}

func (k *keeper) answer(in task.Input) {
	turn := task.Turn{Number: len(k.said) + 1, MessageID: in.ID, OK: true, Text: "you said " + in.Text, Attempts: 1}
	switch {
	case in.Text == "refuse":
		k.tell(task.KindNotice, task.Notice{Level: "warn", Message: "input message was not taken", MessageID: in.ID})
		return
	case in.Text == "fail":
		turn = task.Turn{Number: 2, MessageID: in.ID, Category: task.TurnInvalid, Error: "at /a: no", Attempts: 2}
	case in.Text == "die":
		k.end(task.Result{Run: k.rec.Spec.Run, State: task.StateFailed, Kind: "timeout", Code: 124, Error: "out of time"})
		return
	case in.Schema != nil:
		turn.Value, turn.Degraded, turn.Attempts = json.RawMessage(`{"a": 1.0}`), true, 2
	}
	k.tell(task.KindTurn, turn)
}

func (k *keeper) end(res task.Result) {
	k.tell(task.KindFinished, res)
	if err := k.store.Finish(context.WithoutCancel(k.t.Context()), k.rec.Spec.Run, res); err != nil {
		k.t.Error(err)
	}
}

// openedSession is the app of a machine with one open session.
func openedSession(t *testing.T, spec task.Spec) (*app, *keeper) {
	t.Helper()
	streams, _, _, _ := term.Test()
	a := fakeApp(Process{Streams: streams, Dir: t.TempDir(), Environ: []string{"INSIGHTSCLI_STATE_DIR=" + t.TempDir()}}, nil)
	c, err := a.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.openState(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	me, err := owner.Acquire(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	spec.V, spec.Task, spec.Run, spec.Team, spec.User = task.SpecVersion, task.NewID(), task.NewID(), seedTeam, seedUser
	err = errors.Join(s.store.Create(t.Context(), spec, nil), s.store.Begin(t.Context(), spec.Run))
	ok, claimErr := s.store.Claim(t.Context(), spec.Run, "", me.ID)
	rec, recErr := s.store.Run(t.Context(), spec.Run)
	log, logErr := s.store.OpenLog(t.Context(), rec)
	if err := errors.Join(err, claimErr, recErr, logErr); err != nil || !ok {
		t.Fatal(ok, err)
	}
	k := &keeper{t: t, store: s.store, rec: rec, log: log, done: make(chan struct{})}
	k.tell(task.KindTurn, task.Turn{Number: 1, OK: true, Text: "first", Attempts: 1})
	go k.keep()
	t.Cleanup(func() {
		<-k.done // it ends with the test's context
		if err := errors.Join(log.Close(), me.Release()); err != nil {
			t.Error(err)
		}
	})
	return a, k
}

// in runs a command line on a machine.
func in(t *testing.T, a *app, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	streams, _, out, err := term.Test()
	b := fakeApp(Process{Streams: streams, Args: args, Dir: a.process.Dir, Environ: a.process.Environ}, nil)
	code = b.main(t.Context())
	return code, out.String(), err.String()
}

func TestSessionSendAndEnd(t *testing.T) {
	a, k := openedSession(t, task.Spec{Session: true, Title: "talk", Agent: task.Agent{Name: task.AgentClaude}})
	id := string(k.rec.Spec.Run)
	if code, out, errout := in(t, a, "session", "send", "latest", "hello"); code != 0 || out != "you said hello\n" || errout != "" {
		t.Errorf("%d, %q, %q", code, out, errout)
	}
	schema := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(schema, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errout := in(t, a, "session", "send", id[:8], "hello", "--schema", schema)
	if code != 0 || out != "{\"a\":1.0}\n" || !strings.Contains(errout, "warning: the reply fits only because it says nothing (after 2 attempts)") {
		t.Errorf("%d, %q, %q", code, out, errout)
	}
	code, out, _ = in(t, a, "session", "send", id, "x", "--json")
	var printed sessionTurn
	if err := json.Unmarshal([]byte(out), &printed); err != nil || code != 0 || string(printed.Session) != id || printed.Turn.Text != "you said x" {
		t.Errorf("%d, %q, %v", code, out, err)
	}
	if code, out, errout := in(t, a, "session", "send", id, "refuse"); code != 1 || out != "" || !strings.Contains(errout, "was not taken") {
		t.Errorf("%d, %q, %q", code, out, errout)
	}
	if code, out, errout := in(t, a, "session", "send", id, "fail"); code != 7 || out != "" || !strings.Contains(errout, "the turn failed (invalid): at /a: no") {
		t.Errorf("%d, %q, %q", code, out, errout)
	}
	if code, out, _ := in(t, a, "session", "list"); code != 0 || !strings.Contains(out, id[:8]) || !strings.Contains(out, "talk") {
		t.Errorf("%d, %q", code, out)
	}
	if code, _, errout := in(t, a, "session", "end", id, "--status", "failed", "--error", "no use"); code != 0 {
		t.Errorf("%d, %q", code, errout)
	}
	if last := k.said[len(k.said)-1]; last.Kind != task.InputEnd || last.Value != "failed" || last.Text != "no use" {
		t.Errorf("%+v", last)
	}
	if code, _, errout := in(t, a, "session", "send", id, "hello"); code != 1 || !strings.Contains(errout, "is over (failed)") {
		t.Errorf("%d, %q", code, errout)
	}
	if code, out, errout := in(t, a, "session", "list", "--json"); code != 0 || out != "[]\n" {
		t.Errorf("%d, %q, %q", code, out, errout)
	}
}

func TestSessionThatEndsMeanwhile(t *testing.T) {
	a, _ := openedSession(t, task.Spec{Session: true, Agent: task.Agent{Name: task.AgentClaude}})
	if code, _, errout := in(t, a, "session", "send", "latest", "die"); code != 124 || !strings.Contains(errout, "error: out of time") {
		t.Errorf("%d, %q", code, errout)
	}
}

func TestARunIsNoSession(t *testing.T) {
	a, k := openedSession(t, task.Spec{Agent: task.Agent{Name: task.AgentClaude}})
	for _, args := range [][]string{{"send", "latest", "x"}, {"end", "latest"}} {
		if code, _, errout := in(t, a, append([]string{"session"}, args...)...); code != 1 || !strings.Contains(errout, "is not a session") {
			t.Errorf("%d, %q", code, errout)
		}
	}
	k.end(task.Result{Run: k.rec.Spec.Run, State: task.StateCompleted})
}

func TestSessionUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noSchema := write("s.json", `{"type":"thing"}`)
	bad := write("bad.yaml", "turns: [{label: a, prompt: \"${b}\"}]")
	option := write("option.yaml", "options: {detach: 1}\nturns: [{label: a, prompt: x}]")
	exec := write("exec.yaml", "agent: exec\nturns: [{label: a, prompt: x}]")
	file := write("file.yaml", "turns: [{label: a, prompt: x, schema: s.json}]")
	for line, want := range map[string]string{
		"session":                                    "needs a command",
		"session talk":                               "unknown command",
		"session start":                              "needs a PROMPT",
		"session start x y":                          "takes only a PROMPT",
		"session start x --detach":                   "unknown flag: --detach",
		"session start x --agent exec":               "a session needs an agent that replies",
		"session start x --schema /none":             "ANTHROPIC_API_KEY|read the schema",
		"session send latest":                        "needs a SESSION and a PROMPT",
		"session end latest --status done":           "--status is completed or failed",
		"session end latest --error x":               "--error goes with --status failed",
		"session run /none.yaml":                     "read the script",
		"session run " + bad:                         "the script cannot be used: turn 1: a: prompt",
		"session run " + option:                      `sessions have no option "detach"`,
		"session run " + exec:                        "a session needs an agent that replies",
		"session run " + file:                        "at /type",
		"session send latest x --schema " + noSchema: "at /type",
	} {
		code, out, errout := fakeRunIn(t, nil, []string{"INSIGHTSCLI_STATE_DIR=" + t.TempDir()}, strings.Fields(line)...)
		found := false
		for _, w := range strings.Split(want, "|") {
			found = found || strings.Contains(errout, w)
		}
		if code != 2 || out != "" || !found {
			t.Errorf("%s: %d, %q, %q", line, code, out, errout)
		}
	}
	demo := []string{"session", "demo", "--repo", ".", "--team-id", "1", "--user-id", "1"}
	if code, _, errout := fakeRunIn(t, nil, []string{"DEBUG=0", "SANDBOX_PROVIDER=docker"}, demo...); code != 2 || !strings.Contains(errout, "DEBUG is 0") {
		t.Errorf("%d, %q", code, errout)
	}
	debug := []string{"DEBUG=1", "INSIGHTSCLI_STATE_DIR=" + t.TempDir()}
	for line, want := range map[string]string{
		"session demo --repo .":                "needs --team-id and --user-id",
		"session demo --team-id 1 --user-id 1": "needs --repo",
	} {
		if code, _, errout := fakeRunIn(t, nil, debug, strings.Fields(line)...); code != 2 || !strings.Contains(errout, want) {
			t.Errorf("%s: %d, %q", line, code, errout)
		}
	}
}
