//go:build linux

package e2e

import (
	"bytes"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// turns returns what came of each prompt.
func (w *world) turns(r run) []task.Turn {
	w.t.Helper()
	var all []task.Turn
	for _, ev := range r.events {
		if ev.Kind == task.KindTurn {
			all = append(all, decode[task.Turn](w, ev))
		}
	}
	return all
}

// Another message while the first turn is at work is the next turn of the same
// conversation.
func TestTwoTurns(t *testing.T) {
	each(t, all, func(w *world) {
		id := w.detach([]fakemodel.Step{{Hold: "first"}, say("the first answer"), say("what the second answer must not be")})
		w.held("first")
		w.must("send", id, w.script(bash("echo second > second.txt"), say("the second answer")))
		w.model.Release("first")
		r := w.ended(id)
		turns := w.turns(r)
		if len(turns) != 2 || turns[0].Text != "the first answer" || turns[1].Text != "the second answer" || turns[1].MessageID == "" {
			w.t.Errorf("turns %+v\n%s", turns, w.story(r.events))
		}
		if diff := w.must("diff", id); !strings.Contains(diff, "+second") {
			w.t.Errorf("diff %q", diff)
		}
		// One conversation: the model has seen the first turn when it is asked for the second.
		log := w.requests()
		if last := string(log[len(log)-1].Body); !strings.Contains(last, "the first answer") {
			w.t.Error("the second turn does not know of the first")
		}
	})
}

// A reply that does not fit its schema is asked for again, whoever notices it: the
// agent, or the host where the agent has no way.
func TestASchemaIsMetInTheEnd(t *testing.T) {
	each(t, all, func(w *world) {
		r := w.succeed([]fakemodel.Step{
			bash("true"), answer(`{"items":"not a list"}`), answer(`{"items":["one","two"]}`), say("and nothing more"),
		}, "--schema", w.schema())
		turn := r.result.Turn
		if turn == nil || !turn.OK || compact(string(turn.Value)) != `{"items":["one","two"]}` || turn.Attempts != 2 {
			w.t.Errorf("turn %+v\n%s", turn, w.story(r.events))
		}
	})
}

func TestASchemaThatIsNeverMetFailsTheRun(t *testing.T) {
	for _, a := range all {
		one(t, a, func(w *world) {
			no := answer(`{"items":"not a list"}`)
			r := w.do([]fakemodel.Step{no, no, no, no, no, no, no, no, no, no, no, no}, "--schema", w.schema())
			turn := r.result.Turn
			if r.code != 7 || turn == nil || turn.OK || turn.Category != task.TurnInvalid || !strings.Contains(r.result.Error, "schema") && !strings.Contains(r.result.Error, "items") {
				w.t.Errorf("exit code %d, turn %+v, error %q\n%s", r.code, turn, r.result.Error, w.story(r.events))
			}
		})
	}
}

func TestARefusalIsNoAnswer(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			r := w.do([]fakemodel.Step{{Refuse: true}, {Refuse: true}}) // Codex does not tell of it, and is asked again
			if turn := r.result.Turn; r.code != 7 || turn == nil || turn.OK || turn.Category != task.TurnRefused && turn.Category != task.TurnEmpty {
				w.t.Errorf("exit code %d, turn %+v\n%s", r.code, turn, w.story(r.events))
			}
		})
	}
}

// A turn without a word is asked for once more.
func TestAnEmptyTurnIsAskedForAgain(t *testing.T) {
	for _, a := range all {
		one(t, a, func(w *world) {
			r := w.succeed([]fakemodel.Step{{Empty: true}, say("now there are words")})
			if turn := r.result.Turn; turn == nil || turn.Text != "now there are words" || turn.Attempts != 2 {
				w.t.Errorf("turn %+v\n%s", turn, w.story(r.events))
			}
		})
	}
}

// A run that is cancelled while a tool is at work ends at once, with its tool.
func TestCancelWhileAToolWorks(t *testing.T) {
	each(t, all, func(w *world) {
		id := w.detach([]fakemodel.Step{bash("echo begun > begun.txt; while true; do sleep 1; done"), say("too late")})
		w.watch(id, told(task.KindAgent, `"tool_call"`, "begun.txt"))
		w.must("cancel", id)
		r := w.ended(id)
		if r.result.State != task.StateCancelled {
			w.t.Errorf("result %+v\n%s", r.result, w.story(r.events))
		}
	})
}

// An interrupt ends the turn and its tool, not the run: the next message is answered.
func TestInterruptATurn(t *testing.T) {
	each(t, all, func(w *world) {
		id := w.detach([]fakemodel.Step{bash("echo begun > begun.txt; while true; do sleep 1; done"), say("too late")})
		w.watch(id, told(task.KindAgent, `"tool_call"`, "begun.txt"))
		w.must("send", id, w.script(say("the next answer")))
		w.must("send", id, "--interrupt")
		r := w.ended(id)
		turns := w.turns(r)
		if len(turns) != 2 || turns[0].Category != task.TurnCancelled || turns[1].Text != "the next answer" {
			w.t.Errorf("turns %+v\n%s", turns, w.story(r.events))
		}
	})
}

// Words for the turn that is going on reach the model within it.
func TestSteer(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			id := w.detach([]fakemodel.Step{
				bash("echo begun; until [ -e /tmp/go-on ]; do sleep 0.1; done"), bash("echo more"), say("done"),
			})
			w.watch(id, told(task.KindAgent, `"tool_call"`, "begun"))
			w.must("send", id, "--steer", "and mind the gap")
			w.watch(id, func(ev task.Event) bool { return bytes.Contains(ev.Params, []byte("and mind the gap")) })
			w.must("exec", id, "--", "touch", "/tmp/go-on")
			r := w.ended(id)
			if turns := w.turns(r); len(turns) != 1 || turns[0].Text != "done" {
				w.t.Errorf("turns %+v\n%s", turns, w.story(r.events))
			}
			log := w.requests()
			if last := string(log[len(log)-1].Body); !strings.Contains(last, "mind the gap") {
				w.t.Errorf("the model has not heard it\n%s", w.story(r.events))
			}
		})
	}
}
