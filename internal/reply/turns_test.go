package reply

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// tale makes the events of a run, a second apart.
type tale struct {
	t     *testing.T
	turns *Turns
	lines [][]byte
	now   time.Time
	seq   uint64
}

func newTale(t *testing.T, schemas map[string]*Schema) *tale {
	return &tale{
		t: t, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		turns: NewTurns(func(id string) *Schema { return schemas[id] }),
	}
}

func (s *tale) event(kind task.Kind, method string, params any) *Ended {
	s.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		s.t.Fatal(err)
	}
	s.now, s.seq = s.now.Add(time.Second), s.seq+1
	ev := task.Event{Seq: s.seq, At: s.now, Kind: kind, Method: method, Params: raw}
	s.lines = append(s.lines, ev.AppendLine(nil))
	return s.turns.Event(ev)
}

type object map[string]any

func (s *tale) update(kind string, rest object) {
	u := object{"sessionUpdate": kind}
	for k, v := range rest {
		u[k] = v
	}
	s.event(task.KindAgent, "session/update", object{"update": u})
}

func (s *tale) says(text string) {
	s.update("agent_message_chunk", object{"content": object{"type": "text", "text": text}})
}

func (s *tale) begins(id string) {
	s.event(task.KindOf("_insights/user_message"), "_insights/user_message", object{"content": "?", "messageId": id})
}

func (s *tale) ends(id string, rest object) *Ended {
	c := object{"stopReason": "end_turn", "messageId": id}
	for k, v := range rest {
		c[k] = v
	}
	return s.event("turn_complete", "_insights/turn_complete", c)
}

// replayed is what a runner sees that takes the run over here.
func (s *tale) replayed() *Turns {
	s.t.Helper()
	again := NewTurns(s.turns.schema)
	for _, line := range s.lines {
		ev, err := task.ParseLine(line)
		if err != nil {
			s.t.Fatal(err)
		}
		again.Event(ev)
	}
	return again
}

func TestTurnTextIsTheLastMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		tell func(*tale)
		want string
	}{
		"chunks": {func(s *tale) { s.says("a "); s.says("b") }, "a b"},
		"counts between chunks": {func(s *tale) {
			s.says("a ")
			s.update("usage_update", object{"used": 1})
			s.event(task.KindNotice, "", task.Notice{Message: "x"})
			s.update("available_commands_update", nil)
			s.says("b")
		}, "a b"},
		"a tool between": {func(s *tale) {
			s.says("I look.")
			s.update("tool_call", object{"title": "ls"})
			s.says("Found it.")
		}, "Found it."},
		"a thought between": {func(s *tale) {
			s.says("I think.")
			s.update("agent_thought_chunk", object{"content": object{"type": "text", "text": "hm"}})
			s.says("So.")
		}, "So."},
		"a tool at the end": {func(s *tale) { s.says("all done"); s.update("tool_call", nil) }, "all done"},
		"whole message":     {func(s *tale) { s.update("agent_message", object{"content": "bare"}) }, "bare"},
		"blocks":            {func(s *tale) { s.update("agent_message", object{"content": []object{{"type": "text", "text": "b"}}}) }, "b"},
		"an image": {func(s *tale) {
			s.says("x")
			s.update("agent_message_chunk", object{"content": object{"type": "image"}})
		}, "x"},
		"of this turn only": {func(s *tale) { s.says("first"); s.ends("", nil); s.begins("m"); s.says("second") }, "second"},
		"the echo of a prompt": {func(s *tale) {
			s.update("user_message_chunk", object{"content": object{"type": "text", "text": "?"}})
			s.says("x")
		}, "x"},
	} {
		s := newTale(t, nil)
		tt.tell(s)
		id := ""
		if strings.HasPrefix(name, "of this") {
			id = "m"
		}
		if e := s.ends(id, nil); e == nil || e.Turn == nil || e.Turn.Text != tt.want {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestTurnsOfASession(t *testing.T) {
	schema := compile(t, `{"type":"object","required":["a"]}`)
	s := newTale(t, map[string]*Schema{"": schema, "m1": schema})
	s.says("no JSON")
	if n, id := s.turns.Current(); n != 1 || id != "" {
		t.Error(n, id)
	}
	first := s.ends("", nil)
	if first == nil || first.Turn != nil || first.RetryID != "start~retry1" || first.Attempt != 1 || string(first.Schema) != string(schema.Raw()) {
		t.Fatalf("%+v", first)
	}
	if p := s.replayed().Pending(); len(p) != 1 || p[0].RetryID != "start~retry1" || p[0].Retry != first.Retry {
		t.Errorf("%+v", p)
	}
	s.begins("start~retry1")
	if p := s.replayed().Pending(); len(p) != 0 {
		t.Errorf("asked again already: %+v", p)
	}
	s.says(`{"a":1}`)
	second := s.ends("start~retry1", nil)
	if second == nil || second.Turn == nil || second.Turn.Number != 1 || second.Turn.MessageID != "" ||
		second.Turn.Attempts != 2 || second.Attempt != 2 || string(second.Turn.Value) != `{"a":1}` {
		t.Fatalf("%+v", second)
	}
	if p := s.replayed().Pending(); len(p) != 1 || p[0].Turn == nil || p[0].Turn.Attempts != 2 {
		t.Errorf("%+v", p)
	}
	s.event(task.KindTurn, "", second.Turn)
	if p := s.replayed().Pending(); len(p) != 0 {
		t.Errorf("%+v", p)
	}
	s.begins("m1")
	third := s.ends("m1", object{"structured": object{"a": 2}, "rejected": 1})
	if third == nil || third.Turn == nil || third.Turn.Number != 2 || third.Turn.MessageID != "m1" || third.Turn.Attempts != 2 {
		t.Fatalf("%+v", third)
	}
}

// TestRetryBehindOtherMessages: messages that were queued before the reply was found
// wanting come first.
func TestRetryBehindOtherMessages(t *testing.T) {
	schema := compile(t, `{"type":"integer"}`)
	s := newTale(t, map[string]*Schema{"m1": schema})
	s.begins("m1")
	s.says("one")
	if e := s.ends("m1", nil); e == nil || e.RetryID != "m1~retry1" {
		t.Fatalf("%+v", e)
	}
	s.begins("m2")
	s.says("words")
	if e := s.ends("m2", nil); e == nil || e.Turn == nil || e.Turn.Number != 2 || e.Turn.Text != "words" {
		t.Fatalf("%+v", e)
	}
	if p := s.turns.Pending(); len(p) != 2 || p[0].RetryID != "m1~retry1" {
		t.Fatalf("%+v", p)
	}
	s.begins("m1~retry1")
	if n, id := s.turns.Current(); n != 1 || id != "m1" {
		t.Error(n, id)
	}
	s.says("1")
	if e := s.ends("m1~retry1", nil); e == nil || e.Turn == nil || !e.Turn.OK || e.Turn.Number != 1 {
		t.Fatalf("%+v", e)
	}
}

// TestOwnIDsThatLookLikeRetries are messages like others.
func TestOwnIDsThatLookLikeRetries(t *testing.T) {
	s := newTale(t, nil)
	s.begins("x~retry1")
	s.says("hello")
	if e := s.ends("x~retry1", nil); e == nil || e.Turn == nil || e.MessageID != "x~retry1" || e.Turn.Attempts != 1 {
		t.Errorf("%+v", e)
	}
}

func TestEndTurnOutranksRefusal(t *testing.T) {
	s := newTale(t, nil)
	s.begins("m")
	s.says("half")
	if e := s.ends("m", object{"stopReason": "refusal"}); e == nil || e.Turn == nil || e.Turn.Category != task.TurnRefused || e.Turn.Text != "" {
		t.Errorf("%+v", e)
	}
	s.says("the answer")
	if e := s.ends("m", nil); e == nil || e.Turn == nil || !e.Turn.OK || e.Turn.Text != "the answer" || e.Turn.Attempts != 1 {
		t.Errorf("%+v", e)
	}
	if e := s.ends("m", object{"stopReason": "refusal"}); e == nil || e.Turn == nil || !e.Turn.OK {
		t.Errorf("%+v", e)
	}
	s.event(task.KindTurn, "", task.Turn{Number: 1, MessageID: "m", OK: true})
	if e := s.ends("m", object{"stopReason": "refusal"}); e != nil {
		t.Errorf("judged already: %+v", e)
	}
}

func TestOlderSpellingAndStrangeEvents(t *testing.T) {
	s := newTale(t, nil)
	s.event("x", "__insights/user_message", object{"messageId": "m"})
	s.event(task.KindAgent, "session/update", "not an object")
	s.event(task.KindAgent, "session/update", object{"update": object{"sessionUpdate": "agent_message_chunk", "content": 7}})
	s.event(task.KindTurn, "", "x")
	s.event(task.KindStep, "", 7)
	s.says("x")
	if e := s.event("x", "__insights/turn_complete", object{"messageId": "m", "stopReason": "end_turn"}); e == nil || e.Turn.Text != "x" {
		t.Errorf("%+v", e)
	}
}

func TestTimedOutTurnIsClassified(t *testing.T) {
	s := newTale(t, nil)
	s.begins("m")
	s.says("I begin.")
	s.now = s.now.Add(30 * time.Minute)
	s.event(task.KindNotice, "", task.Notice{Message: "no sign of life"})
	s.update("tool_call_update", object{"status": "failed"})
	e := s.ends("m", object{"stopReason": "error", "error": "the turn took longer than 30m0s", "timedOut": true})
	if e == nil || e.Turn == nil || e.Turn.Category != task.TurnStalled {
		t.Errorf("%+v", e)
	}
}

func TestLongMessagesAreBounded(t *testing.T) {
	s := newTale(t, nil)
	piece := strings.Repeat("x", 1<<20)
	for range 6 {
		s.says(piece)
	}
	if e := s.ends("", nil); e == nil || len(e.Turn.Text) != maxText+1 {
		t.Errorf("%d bytes", len(e.Turn.Text))
	}
}
