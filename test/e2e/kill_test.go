//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// The process that carries out a run is killed, once while the model is in the middle
// of a reply and once while a tool is at work. The agent waits, the next command brings
// the run on its way, the turn goes on, and no event is lost or doubled.
func TestKilledWithinATurn(t *testing.T) {
	each(t, all, func(w *world) {
		id := w.detach([]fakemodel.Step{
			bash("echo one >> steps.txt"),
			{Bash: "echo two >> steps.txt", Say: "words before the second command", Hold: "reply"},
			bash("echo three >> steps.txt; until [ -e /tmp/go-on ]; do sleep 0.1; done; echo four >> steps.txt"),
			say("it is done"),
		}, "--host-grace", "2m")
		w.held("reply")
		w.killRunner()
		w.model.Release("reply")
		w.must("ps")
		w.watch(id, told(task.KindAgent, `"tool_call"`, "go-on"))
		w.killRunner()
		w.must("ps")
		w.letGoOn(id)
		r := w.ended(id)
		if r.code != 0 || r.result.Turn == nil || r.result.Turn.Text != "it is done" {
			w.t.Fatalf("result %+v\n%s\n%s", r.result, r.stderr, w.story(r.events))
		}
		if diff := w.must("diff", id); !strings.Contains(diff, "+one\n+two\n+three\n+four\n") {
			w.t.Errorf("diff %q", diff)
		}
		finished := 0
		for _, ev := range r.events {
			if ev.Kind == task.KindFinished {
				finished++
			}
		}
		if finished != 1 {
			w.t.Errorf("%d ends", finished)
		}
	})
}

// letGoOn makes the file that a command of the script waits for, as soon as somebody
// carries the run out again.
func (w *world) letGoOn(id string) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		out := w.try("exec", id, "--", "touch", "/tmp/go-on")
		if out.code == 0 {
			return
		}
		if out.code != 5 || time.Now().After(end) {
			w.t.Fatalf("exec: exit code %d\n%s", out.code, out.stderr)
		}
	}
}
