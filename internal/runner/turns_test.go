package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/task"
)

// scripted is an agent that answers its n-th prompt, from 0, with what reply says.
type scripted struct {
	host  *agentserver.Host
	reply func(n int, text string) (string, wire.Outcome)
	n     int
	stop  chan struct{}
}

func (s *scripted) Start(context.Context, wire.Start) error { return nil }

func (s *scripted) Prompt(ctx context.Context, text string, _ json.RawMessage) (agentserver.Turn, error) {
	words, outcome := s.reply(s.n, text)
	s.n++
	if words == "wait" {
		select {
		case <-s.stop:
			return agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopCancelled}}, nil
		case <-ctx.Done():
			return agentserver.Turn{}, ctx.Err()
		}
	}
	if words != "" {
		if err := s.host.Text(ctx, "agent_message_chunk", words); err != nil {
			return agentserver.Turn{}, err
		}
	}
	if outcome.StopReason == "" {
		outcome.StopReason = agentserver.StopEndTurn
	}
	return agentserver.Turn{Outcome: outcome}, nil
}

func (s *scripted) Cancel(context.Context) {
	select {
	case s.stop <- struct{}{}:
	default:
	}
}

func (s *scripted) Close(context.Context) { s.Cancel(context.Background()) }

// talkative is a rig whose sandboxes have an agent that answers as reply says.
func talkative(t *testing.T, reply func(n int, text string) (string, wire.Outcome)) *rig {
	t.Helper()
	r := newRig(t)
	r.provider = memory.New(map[string]agentserver.NewDriver{
		"exec": execdriver.New,
		"claude": func(h *agentserver.Host) agentserver.Driver {
			return &scripted{host: h, reply: reply, stop: make(chan struct{}, 1)}
		},
	})
	return r
}

func says(words ...string) func(int, string) (string, wire.Outcome) {
	return func(n int, _ string) (string, wire.Outcome) {
		if n >= len(words) {
			return "again", wire.Outcome{}
		}
		return words[n], wire.Outcome{}
	}
}

func (r *rig) prompt(schema string) task.Spec {
	spec := r.spec()
	spec.Agent, spec.Description = task.Agent{Name: task.AgentClaude}, "do it"
	if schema != "" {
		spec.Schema = json.RawMessage(schema)
	}
	return spec
}

// ask carries out a run and returns its result; nothing of it may be left.
func (r *rig) ask(spec task.Spec) task.Result {
	r.t.Helper()
	res, err := r.runner.Run(r.t.Context(), spec, nil, nil, &recorder{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.stored(spec.Run)
	r.nothingLeft(spec.Run)
	return res
}

const wantsItems = `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"string"}}}}`

// A background run ends by itself after its turn, and its result has what was said.
func TestARunOfAnAgentEndsAfterItsTurn(t *testing.T) {
	r := talkative(t, says("all done"))
	res := r.ask(r.prompt(""))
	if res.State != task.StateCompleted || res.Code != 0 || res.Turn == nil || !res.Turn.OK || res.Turn.Text != "all done" || res.Turn.Attempts != 1 {
		t.Errorf("result %+v, turn %+v", res, res.Turn)
	}
}

// A reply that cannot be used is asked for once more, with the reason; the second one
// decides.
func TestRepliesAreAskedForOnceMore(t *testing.T) {
	tests := map[string]struct {
		words    []string
		schema   string
		ok       bool
		value    string
		category string
		attempts int
		code     int
	}{
		"fits":              {words: []string{`{"items":["a"]}`}, schema: wantsItems, ok: true, value: `{"items":["a"]}`, attempts: 1},
		"fits the second":   {words: []string{`{"items":1}`, "```json\n{\"items\":[\"b\"]}\n```"}, schema: wantsItems, ok: true, value: `{"items":["b"]}`, attempts: 2},
		"never fits":        {words: []string{"no", "still no"}, schema: wantsItems, category: task.TurnInvalid, attempts: 2, code: 7},
		"empty, then words": {words: []string{"", "here"}, ok: true, attempts: 2},
		"empty twice":       {words: []string{"", ""}, category: task.TurnEmpty, attempts: 2, code: 7},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := talkative(t, says(tt.words...))
			res := r.ask(r.prompt(tt.schema))
			turn := res.Turn
			if turn == nil || turn.OK != tt.ok || string(turn.Value) != tt.value || turn.Category != tt.category || turn.Attempts != tt.attempts {
				t.Fatalf("turn %+v", turn)
			}
			if res.Code != tt.code || tt.ok != (res.State == task.StateCompleted) {
				t.Errorf("result %+v", res)
			}
			if !tt.ok && res.Error != turn.Error {
				t.Errorf("the run says %q, the turn %q", res.Error, turn.Error)
			}
		})
	}
}

// A failed turn is a failed run, whatever the agent's last words were.
func TestAFailedTurnIsAFailedRun(t *testing.T) {
	for name, outcome := range map[string]wire.Outcome{
		task.TurnError:   {StopReason: agentserver.StopError, Error: "API Error: 500"},
		task.TurnRefused: {StopReason: agentserver.StopRefusal},
	} {
		r := talkative(t, func(int, string) (string, wire.Outcome) { return "some words", outcome })
		res := r.ask(r.prompt(""))
		if res.State != task.StateFailed || res.Code != 7 || res.Turn.Category != name || res.Turn.Text != "" {
			t.Errorf("%s: result %+v, turn %+v", name, res, res.Turn)
		}
	}
}

// follow runs a session in the background of the test; say tells it something once the
// n-th turn is over.
func (r *rig) session(spec task.Spec, say ...task.Input) task.Result {
	r.t.Helper()
	spec.Session = true
	turns := make(chan struct{}, 16)
	done := make(chan task.Result, 1)
	go func() {
		res, err := r.runner.Run(r.t.Context(), spec, nil, nil, &recorder{on: func(ev task.Event) {
			if ev.Kind == task.KindTurn {
				turns <- struct{}{}
			}
		}})
		if err != nil {
			r.t.Error(err)
		}
		done <- res
	}()
	for i, in := range say {
		select {
		case <-turns:
		case res := <-done:
			r.t.Fatalf("over before input %d: %+v", i, res)
		case <-r.t.Context().Done():
			r.t.Fatal("no turn")
		}
		in.ID = fmt.Sprintf("input-%d", i)
		if _, err := r.store.AddInput(r.t.Context(), spec.Run, in); err != nil {
			r.t.Fatal(err)
		}
	}
	res := <-done
	r.stored(spec.Run)
	r.nothingLeft(spec.Run)
	return res
}

// A session stays open for turns with schemas of their own, until it is ended.
func TestASessionGoesOnUntilItIsEnded(t *testing.T) {
	r := talkative(t, says("hello", `{"items":["x"]}`))
	res := r.session(r.prompt(""),
		task.Input{Kind: task.InputMessage, Text: "list them", Schema: json.RawMessage(wantsItems)},
		task.Input{Kind: task.InputEnd, Value: string(task.StateCompleted)})
	if res.State != task.StateCompleted || res.Turn.Number != 2 || res.Turn.MessageID != "input-0" || string(res.Turn.Value) != `{"items":["x"]}` {
		t.Errorf("result %+v, turn %+v", res, res.Turn)
	}
}

// Whatever goes wrong in a session ends it as failed: it is never left in progress.
func TestASessionThatFailsIsOver(t *testing.T) {
	tests := map[string]struct {
		words []string
		say   []task.Input
		want  string
	}{
		"its first turn": {words: []string{"", ""}, want: "empty end_turn twice"},
		"a later turn": {
			words: []string{"hello", "no", "no"},
			say:   []task.Input{{Kind: task.InputMessage, Text: "list", Schema: json.RawMessage(wantsItems)}},
			want:  "no JSON",
		},
		"ended as failed": {
			words: []string{"hello"},
			say:   []task.Input{{Kind: task.InputEnd, Value: string(task.StateFailed), Text: "not good enough"}},
			want:  "not good enough",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := talkative(t, says(tt.words...))
			res := r.session(r.prompt(""), tt.say...)
			if res.State != task.StateFailed || res.Code != 7 || !strings.Contains(res.Error, tt.want) {
				t.Errorf("result %+v", res)
			}
		})
	}
}

// An interrupt ends the turn and not the session.
func TestAnInterruptEndsTheTurnOnly(t *testing.T) {
	r := talkative(t, says("hello", "wait", "third"))
	spec := r.prompt("")
	go func() {
		for r.t.Context().Err() == nil {
			rec, err := r.store.Run(r.t.Context(), spec.Run)
			if err == nil && rec.State.Terminal() {
				return
			}
			if c, err := r.runner.Client(spec.Run); err == nil {
				if h, err := c.Health(r.t.Context()); err == nil && h.Active {
					_ = c.Send(r.t.Context(), task.Input{Kind: task.InputInterrupt})
				}
			}
			select {
			case <-r.t.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	res := r.session(spec,
		task.Input{Kind: task.InputMessage, Text: "wait"},
		task.Input{Kind: task.InputMessage, Text: "go on"},
		task.Input{Kind: task.InputEnd})
	if res.State != task.StateCompleted || !res.Turn.OK || res.Turn.Text != "third" {
		t.Errorf("result %+v, turn %+v", res, res.Turn)
	}
}

// The agent may say itself how the task ended; the turn that is going on comes to its end.
func TestTheAgentEndsItsRun(t *testing.T) {
	for _, state := range []task.State{task.StateCompleted, task.StateFailed} {
		var reporter steps.Reporter
		r := talkative(t, func(int, string) (string, wire.Outcome) {
			if err := reporter.End(t.Context(), state, "as far as I came"); err != nil {
				t.Error(err)
			}
			return "bye", wire.Outcome{}
		})
		r.runner = r.newRunnerWith("me", func(s *steps.Steps) {
			s.Services = func(_ context.Context, _ task.Spec, rep steps.Reporter) (steps.Services, error) {
				reporter = rep
				return steps.Services{}, nil
			}
		})
		spec := r.prompt("")
		spec.Session = true // it would stay
		res := r.ask(spec)
		if res.State != state || res.Turn.Text != "bye" || (state == task.StateFailed) != (res.Error == "as far as I came") {
			t.Errorf("%s: result %+v, turn %+v", state, res, res.Turn)
		}
	}
}

// A message that was said before the last turn ended is answered: the run does not end
// over it.
func TestARunTakesWhatWasSaidMeanwhile(t *testing.T) {
	r := talkative(t, func(n int, text string) (string, wire.Outcome) { return fmt.Sprintf("%d: %s", n, text), wire.Outcome{} })
	spec := r.prompt("")
	if err := r.runner.Submit(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		in := task.Input{ID: fmt.Sprint("m", i), Kind: task.InputMessage, Text: fmt.Sprint("more ", i)}
		if _, err := r.store.AddInput(t.Context(), spec.Run, in); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := r.store.Claim(t.Context(), spec.Run, "", "me"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	res, err := r.runner.Execute(t.Context(), spec.Run, nil, &recorder{})
	if err != nil || res.State != task.StateCompleted || res.Turn.Number != 4 || res.Turn.Text != "3: more 2" {
		t.Errorf("result %+v, turn %+v, %v", res, res.Turn, err)
	}
}

// The runner dies right after a turn that must be asked again; the next one asks, once.
func TestAnotherRunnerJudgesTheTurn(t *testing.T) {
	for at, kind := range map[string]string{"before the judgement": wire.EventTurnComplete, "while it is asked again": wire.EventUserMessage} {
		t.Run(at, func(t *testing.T) {
			r := talkative(t, says("nothing of use", `{"items":[]}`))
			spec := r.prompt(wantsItems)
			ctx, abandon := context.WithCancelCause(t.Context())
			_, err := r.runner.Run(ctx, spec, nil, nil, &recorder{on: func(ev task.Event) {
				if ev.Method == kind {
					abandon(runner.ErrAbandoned)
				}
			}})
			if err != nil {
				r.goOn(spec.Run)
			}
			turns := 0
			for _, ev := range r.stored(spec.Run) {
				if ev.Method == wire.EventTurnComplete {
					turns++
				}
			}
			rec, err := r.store.Run(t.Context(), spec.Run)
			if err != nil || turns != 2 || rec.Result.Turn == nil || !rec.Result.Turn.OK || rec.Result.Turn.Attempts != 2 {
				t.Errorf("%d turns, result %+v, %v", turns, rec.Result, err)
			}
			r.nothingLeft(spec.Run)
		})
	}
}
