package runner

import (
	"encoding/json"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/reply"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Words by which the agent was to be asked again, and which it does not take, end the
// turn: nobody waits for its answer.
func TestARefusedRetryFailsTheTurn(t *testing.T) {
	x := quietFollower(t, nil).x
	x.story.seen = x.turns.event
	x.story.method(wire.EventTurnComplete, wire.TurnComplete{StopReason: "end_turn"}) // without a word
	x.story.tell(task.KindNotice, task.Notice{Level: "warn", MessageID: reply.RetryID("", 1)})
	x.turns.judge(t.Context(), true)
	if last := x.turns.last; last == nil || last.OK || last.Category != task.TurnError {
		t.Errorf("turn %+v", last)
	}
	if done, sure := x.turns.decided(); !done || !sure {
		t.Error("the run goes on")
	}
}

// The finished event is the last one, whoever has something to say after it.
func TestNothingComesAfterTheEnd(t *testing.T) {
	x := quietFollower(t, nil).x
	var seen []task.Kind
	x.story.seen = func(ev task.Event) { seen = append(seen, ev.Kind) }
	x.story.tell(task.KindFinished, task.Result{})
	x.story.tell(task.KindUsage, task.Usage{})
	x.story.notice("info", "late")
	if len(seen) != 1 {
		t.Errorf("events %v", seen)
	}
}

// What is remembered of a turn, and ends up in the run's result, is what the log says:
// masked, and the same for whoever takes the run over.
func TestTheLastTurnIsThatOfTheLog(t *testing.T) {
	x := quietFollower(t, nil).x
	x.story.setMask(newMasker(map[string]secret.String{"K": secret.New("canary-0123456789")}))
	x.story.seen = x.turns.event
	x.story.tell(task.KindTurn, task.Turn{OK: true, Text: "it is canary-0123456789", Value: json.RawMessage(`"canary-0123456789"`)})
	if last := x.turns.last; last.Text != "it is [hidden]" || string(last.Value) != `"[hidden]"` {
		t.Errorf("turn %+v", last)
	}
}
