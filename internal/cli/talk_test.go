package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// terminal is somebody who talks with an agent, in a bubble of synctest.
type terminal struct {
	t     *testing.T
	talk  *talk
	keys  *io.PipeWriter
	shown strings.Builder
	over  bool
}

func newTerminal(t *testing.T) *terminal {
	in, keys := io.Pipe()
	x := &terminal{t: t, keys: keys}
	x.talk = newTalk(task.SinkFunc(func(task.Event) {}), &x.shown)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); _ = keys.Close() })
	go func() { x.talk.run(ctx, in); x.over = true }()
	return x
}

// event shows them an event, and returns what it made the terminal say.
func (x *terminal) event(kind task.Kind, method string, payload any) string {
	x.t.Helper()
	b, err := json.Marshal(payload)
	if err != nil {
		x.t.Fatal(err)
	}
	return x.said(func() { x.talk.Emit(task.Event{Kind: kind, Method: method, Params: b}) })
}

func (x *terminal) said(by func()) string {
	synctest.Wait()
	before := x.shown.Len()
	by()
	synctest.Wait()
	return x.shown.String()[before:]
}

// types types a line and returns what was said to the run by it.
func (x *terminal) types(line string) (in task.Input) {
	x.t.Helper()
	if _, err := io.WriteString(x.keys, line+"\n"); err != nil {
		x.t.Fatal(err)
	}
	synctest.Wait()
	select {
	case in = <-x.talk.inbox:
	default:
	}
	synctest.Wait()
	in.ID = ""
	return in
}

func permission(id string) task.Permission {
	return task.Permission{
		RequestID: id, ToolCall: task.PermissionTool{Title: "do " + id},
		Options: []task.PermissionOption{{ID: "yes", Name: "Yes"}, {ID: "no", Name: "No"}},
	}
}

// Several questions at once are asked one after the other, and one that somebody else has
// answered is not asked any more.
func TestEveryQuestionIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTerminal(t)
		if said := x.event(task.KindPermission, "", permission("a")); !strings.Contains(said, "do a") {
			t.Errorf("said %q", said)
		}
		for _, id := range []string{"b", "c", "d"} {
			if said := x.event(task.KindPermission, "", permission(id)); said != "" {
				t.Errorf("two at once: %q", said)
			}
		}
		if said := x.event("permission_resolved", wire.EventPermitted, map[string]string{"requestId": "b"}); said != "" {
			t.Errorf("said %q", said)
		}
		var in task.Input
		if said := x.said(func() { in = x.types("2") }); !strings.Contains(said, "do c") || in.Kind != task.InputPermission || in.Name != "a" || in.Value != "no" {
			t.Errorf("said %q, input %+v", said, in)
		}
		if said := x.said(func() { in = x.types("7") }); !strings.Contains(said, "do c") || in.Kind != "" {
			t.Errorf("said %q, input %+v", said, in)
		}
		if said := x.event("permission_resolved", wire.EventPermitted, map[string]string{"requestId": "c"}); !strings.Contains(said, "do d") {
			t.Errorf("said %q", said)
		}
		if in := x.types("1"); in.Kind != "" {
			t.Errorf("the number of another question: %+v", in)
		}
		if in := x.types("5"); in.Name != "d" || in.Value != "yes" {
			t.Errorf("input %+v", in)
		}
	})
}

// It is their turn after one that went well; an empty line then ends the talk.
func TestTurnsOfATalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTerminal(t)
		if said := x.event(task.KindTurn, "", task.Turn{Category: task.TurnError}); said != "" {
			t.Errorf("after a failure: %q", said)
		}
		if x.types(""); x.over {
			t.Fatal("an empty line ended it too soon")
		}
		if said := x.event(task.KindTurn, "", task.Turn{OK: true}); !strings.Contains(said, "your turn") {
			t.Errorf("said %q", said)
		}
		if in := x.types(" go on "); in.Kind != task.InputMessage || in.Text != "go on" {
			t.Errorf("input %+v", in)
		}
		x.event(task.KindTurn, "", task.Turn{OK: true})
		if x.types(""); !x.over {
			t.Error("it goes on")
		}
	})
}
