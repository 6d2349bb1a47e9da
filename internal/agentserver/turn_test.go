package agentserver

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// scripted is an agent whose turns are functions.
type scripted struct {
	host   *Host
	prompt func(ctx context.Context, d *scripted, text string) (Turn, error)
	steer  func(text string) string

	mu       sync.Mutex
	canceled chan struct{}
	closed   chan struct{}
	steered  []string
}

func (d *scripted) Start(context.Context, wire.Start) error { return nil }

func (d *scripted) Prompt(ctx context.Context, text string, _ json.RawMessage) (Turn, error) {
	return d.prompt(ctx, d, text)
}

func (d *scripted) Cancel(context.Context) { closeOnce(d.canceled) }
func (d *scripted) Close(context.Context)  { closeOnce(d.closed) }

func closeOnce(c chan struct{}) {
	if !isClosed(c) {
		close(c)
	}
}

func (d *scripted) Steer(_ context.Context, text string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steered = append(d.steered, text)
	return d.steer(text)
}

// play runs test with a session of d in a bubble of fake time, and returns its events.
func play(t *testing.T, d *scripted, st wire.Start, test func(t *testing.T, s *session)) []wire.Frame {
	t.Helper()
	var frames []wire.Frame
	synctest.Test(t, func(t *testing.T) {
		d.canceled, d.closed = make(chan struct{}), make(chan struct{})
		st.Agent = "scripted"
		s := newSession(newHost(), map[string]NewDriver{"scripted": func(h *Host) Driver {
			d.host = h
			return d
		}})
		must(t, s.start(t.Context(), t.Context(), st))
		test(t, s)
		s.close(t.Context())
		s.running.Wait()
		frames, _ = s.journal.after(nil, 0, 1<<20)
	})
	return frames
}

// turns are the ends of turns among the events.
func turns(t *testing.T, frames []wire.Frame) []wire.TurnComplete {
	t.Helper()
	var all []wire.TurnComplete
	for i := range frames {
		var c wire.TurnComplete
		if frames[i].Method == wire.EventTurnComplete {
			must(t, json.Unmarshal(frames[i].Data, &c))
			all = append(all, c)
		}
	}
	return all
}

func methods(frames []wire.Frame) string {
	all := ""
	for i := range frames {
		if frames[i].Type == wire.FrameEvent {
			all += " " + frames[i].Method
		}
	}
	return all
}

var ended = Turn{Outcome: wire.Outcome{StopReason: StopEndTurn}}

// TestTurnIsWhole: nothing that the agent said comes after the end of its turn, and
// messages stand before what they led to.
func TestTurnIsWhole(t *testing.T) {
	d := &scripted{prompt: func(ctx context.Context, d *scripted, _ string) (Turn, error) {
		_ = d.host.Text(ctx, saying, "Hel")
		_ = d.host.Update(ctx, snapshot("1", "in_progress", "a"))
		_ = d.host.Update(ctx, snapshot("1", "in_progress", "b"))
		_ = d.host.Text(ctx, saying, "lo")
		return Turn{Outcome: ended.Outcome, Structured: json.RawMessage(`{"a":1}`), Rejected: 2}, nil
	}}
	frames := play(t, d, wire.Start{Prompt: "hello"}, func(t *testing.T, s *session) {
		for _, id := range []string{"m1", ""} {
			r, err := s.message(t.Context(), wire.UserMessage{Content: "and", MessageID: id, Schema: json.RawMessage(`{"type":"object"}`)})
			if err != nil || r.StopReason != StopEndTurn {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
	turn := " session/update session/update session/update session/update _insights/turn_complete"
	if got, want := methods(frames), turn+" _insights/user_message"+turn+" _insights/user_message"+turn; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	got := turns(t, frames)
	if len(got) != 3 || got[0].MessageID != "" || got[1].MessageID != "m1" || got[2].MessageID == "" {
		t.Fatalf("%+v", got)
	}
	if got[1].StopReason != StopEndTurn || string(got[1].Structured) != `{"a":1}` || got[1].Rejected != 2 || got[1].TimedOut {
		t.Errorf("%+v", got[1])
	}
	if f := frames[5]; string(f.Data) != `{"content":"and","messageId":"m1","schema":{"type":"object"}}` {
		t.Errorf("%s", f.Data)
	}
}

// TestTurnThatTakesTooLong is cancelled and has failed; the session goes on.
func TestTurnThatTakesTooLong(t *testing.T) {
	slow := true
	d := &scripted{prompt: func(_ context.Context, d *scripted, _ string) (Turn, error) {
		if !slow {
			return ended, nil
		}
		slow = false
		<-d.canceled
		return Turn{Outcome: wire.Outcome{StopReason: StopCancelled}}, nil
	}}
	frames := play(t, d, wire.Start{Prompt: "work", TurnTime: time.Minute}, func(t *testing.T, s *session) {
		if r, err := s.message(t.Context(), wire.UserMessage{Content: "next"}); err != nil || r.StopReason != StopEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
	})
	got := turns(t, frames)
	if len(got) != 2 || !got[0].TimedOut || got[0].StopReason != StopError || !strings.Contains(got[0].Error, "1m0s") || got[1].TimedOut {
		t.Errorf("%+v", got)
	}
}

// TestAgentThatDoesNotEndItsTurnIsClosed: a turn ends, whatever the agent does.
func TestAgentThatDoesNotEndItsTurnIsClosed(t *testing.T) {
	d := &scripted{prompt: func(_ context.Context, d *scripted, _ string) (Turn, error) {
		<-d.closed
		return Turn{}, context.Canceled
	}}
	begin, took := time.Time{}, time.Duration(0)
	frames := play(t, d, wire.Start{Prompt: "work", TurnTime: time.Minute}, func(t *testing.T, s *session) {
		begin = time.Now()
		<-d.closed
		took = time.Since(begin)
	})
	if got := turns(t, frames); took != time.Minute+closeTime || len(got) != 1 || !got[0].TimedOut {
		t.Errorf("%v, %+v", took, got)
	}
}

// TestTurnThatEndsInTimeIsNotCancelled, nor is the one after it.
func TestTurnThatEndsInTimeIsNotCancelled(t *testing.T) {
	d := &scripted{prompt: func(context.Context, *scripted, string) (Turn, error) {
		pass(time.Minute - 1)
		return ended, nil
	}}
	frames := play(t, d, wire.Start{Prompt: "work", TurnTime: time.Minute}, func(t *testing.T, s *session) {
		if _, err := s.message(t.Context(), wire.UserMessage{Content: "next"}); err != nil {
			t.Error(err)
		}
		if isClosed(d.canceled) {
			t.Error("a turn was cancelled")
		}
	})
	for _, c := range turns(t, frames) {
		if c.TimedOut || c.StopReason != StopEndTurn {
			t.Errorf("%+v", c)
		}
	}
}

func TestSteering(t *testing.T) {
	d := &scripted{
		prompt: func(context.Context, *scripted, string) (Turn, error) {
			pass(time.Minute)
			return ended, nil
		},
		steer: func(text string) string {
			pass(time.Second)
			return strings.TrimPrefix(text, "left")
		},
	}
	frames := play(t, d, wire.Start{Prompt: "work"}, func(t *testing.T, s *session) {
		m := wire.UserMessage{Content: "left", MessageID: "s1", Steer: true}
		twin := make(chan wire.TurnResult)
		go func() { // the same message at the same time
			r, _ := s.message(t.Context(), m)
			twin <- r
		}()
		a, err := s.message(t.Context(), m)
		b := <-twin
		if a.Duplicate {
			a, b = b, a
		}
		if err != nil || a.Steered == nil || !*a.Steered || !b.Duplicate || b.StopReason != wire.StopDuplicate {
			t.Errorf("%+v, %+v, %v", a, b, err)
		}
		m = wire.UserMessage{Content: "left, but the other", MessageID: "s2", Steer: true}
		if r, err := s.message(t.Context(), m); err != nil || r.Steered == nil || *r.Steered || r.Reason != ", but the other" {
			t.Errorf("%+v, %v", r, err)
		}
		m.Steer = false // then it is a message like any other
		go func() { _, _ = s.message(t.Context(), m) }()
		synctest.Wait()
		m.Steer = true // and is known when it is sent again
		if r, err := s.message(t.Context(), m); err != nil || r.StopReason != StopEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := s.message(t.Context(), wire.UserMessage{Content: "left", Steer: true}); err != nil || *r.Steered || r.Reason == "" {
			t.Errorf("without a turn: %+v, %v", r, err)
		}
	})
	if len(d.steered) != 2 {
		t.Error(d.steered)
	}
	if got := string(frames[0].Data); got != `{"content":"left","messageId":"s1","steer":true}` {
		t.Error(got)
	}
}

// TestLongMessageLeavesAnEvent: its beginning.
func TestLongMessageLeavesAnEvent(t *testing.T) {
	d := &scripted{prompt: func(_ context.Context, _ *scripted, text string) (Turn, error) {
		if len(text) < 2<<20 {
			return Turn{}, context.Canceled
		}
		return ended, nil
	}}
	frames := play(t, d, wire.Start{}, func(t *testing.T, s *session) {
		r, err := s.message(t.Context(), wire.UserMessage{Content: strings.Repeat("\x01", 2<<20), MessageID: "m", Schema: json.RawMessage(`{}`)})
		if err != nil || r.StopReason != StopEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
	})
	if len(frames) != 3 || frames[0].Method != wire.EventUserMessage || wire.FrameSize(&frames[0]) > wire.MaxFrame {
		t.Fatal(methods(frames))
	}
	if text := string(frames[0].Data); !strings.HasSuffix(text, `… (2097152 bytes)","messageId":"m"}`) {
		t.Error(text[max(0, len(text)-60):])
	}
}

// TestFailedTurn: whoever asked through /command gets an error, the host a result, since
// its message was delivered.
func TestFailedTurn(t *testing.T) {
	d := &scripted{prompt: func(context.Context, *scripted, string) (Turn, error) {
		return Turn{Outcome: wire.Outcome{StopReason: StopError, Error: "no model"}}, nil
	}}
	play(t, d, wire.Start{}, func(t *testing.T, s *session) {
		server := &Server{session: s}
		params := json.RawMessage(`{"content":"hi","schema":null}`)
		if r, err := server.call(t.Context(), wire.MethodUserMessage, params, false); err != nil || r.(wire.TurnResult).Error != "no model" {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := server.call(t.Context(), wire.MethodUserMessage, params, true); err == nil || rpcError(err).Code != wire.CodeExecution {
			t.Error(err)
		}
	})
}

func TestMessagesThatAreRefused(t *testing.T) {
	for params, want := range map[string]string{
		`{}`: "content is empty",
		`{"content":"a","artifacts":[{"id":"1"}]}`:                                  "artifacts are not supported",
		`{"artifacts":[{"id":"1"}]}`:                                                "artifacts are not supported",
		`{"content":"a","schema":"object"}`:                                         "schema is not a JSON Schema",
		`{"content":"a","schema":{},"steer":true}`:                                  "cannot have a schema",
		`{"content":7}`:                                                             "content is neither",
		`{"content":[{"type":"image"}]}`:                                            `blocks of type "image"`,
		`{"content":"a","messageId":"` + strings.Repeat("m", maxMessageID+1) + `"}`: "messageId is longer",
	} {
		_, err := parseMessage(json.RawMessage(params))
		if err == nil || !strings.Contains(err.Error(), want) || rpcError(err).Code != wire.CodeInvalidParams {
			t.Errorf("%.60s: %v", params, err)
		}
	}
	m, err := parseMessage(json.RawMessage(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"schema":{"type":"object"},"messageId":"m"}`))
	if err != nil || m.Content != "ab" || string(m.Schema) != `{"type":"object"}` || m.MessageID != "m" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestDriverOfAnAgent(t *testing.T) {
	s := newSession(newHost(), map[string]NewDriver{"exec": nil, "acp:": nil})
	for agent, want := range map[string]bool{
		"exec": true, "acp:": true, "acp:gemini --acp": true, "acp:a:b": true,
		"": false, "acp": false, "exec:x": false, "hal": false, ":": false,
	} {
		if _, known := s.driverOf(agent); known != want {
			t.Errorf("%q: %v", agent, known)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
