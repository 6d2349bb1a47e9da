package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// talker is a conversational agent: a turn takes a second of fake time.
type talker struct {
	startErr  error
	said      []string
	cancelled chan struct{}
	closed    int
}

func (d *talker) Start(context.Context, wire.Start) error { return d.startErr }

func (d *talker) Prompt(ctx context.Context, text string, _ json.RawMessage) (Turn, error) {
	if text == "die" {
		return Turn{}, errors.New("the agent has died")
	}
	d.said = append(d.said, text)
	select {
	case <-time.After(time.Second):
		return Turn{Outcome: wire.Outcome{StopReason: StopEndTurn}}, nil
	case <-d.cancelled:
		return Turn{Outcome: wire.Outcome{StopReason: StopCancelled}}, nil
	case <-ctx.Done():
		return Turn{}, ctx.Err()
	}
}

func (d *talker) Cancel(context.Context) { d.cancelled <- struct{}{} }
func (d *talker) Close(context.Context) {
	d.closed++
	select {
	case d.cancelled <- struct{}{}:
	default:
	}
}

// conversation runs test with a session of d that has been started with prompt.
func conversation(t *testing.T, d *talker, prompt string, test func(t *testing.T, s *session)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d.cancelled = make(chan struct{}, 1) // of this bubble
		j := newJournal(1<<20, 0)
		s := newSession(&Host{Log: slog.New(slog.DiscardHandler), journal: j}, map[string]NewDriver{
			"talker": func(*Host) Driver { return d },
		})
		if err := s.start(t.Context(), t.Context(), wire.Start{Agent: "talker", Prompt: prompt}); err != nil {
			t.Fatal(err)
		}
		test(t, s)
		s.close(t.Context())
		s.running.Wait()
		if d.startErr == nil && d.closed != 1 {
			t.Errorf("the driver was closed %d times", d.closed)
		}
		frames, _ := j.after(nil, 0, 1<<20)
		if len(frames) == 0 || frames[len(frames)-1].Type != wire.FrameDone {
			t.Error("the last frame is not the outcome")
		}
	})
}

func TestMessagesTakeTheirTurns(t *testing.T) {
	d := &talker{}
	conversation(t, d, "first", func(t *testing.T, s *session) {
		results := make(chan wire.TurnResult, 2)
		for _, text := range []string{"second", "third"} {
			go func() {
				r, err := s.message(t.Context(), wire.UserMessage{Content: text})
				if err != nil {
					t.Error(err)
				}
				results <- r
			}()
			synctest.Wait()
		}
		for range 2 {
			if r := <-results; r.StopReason != StopEndTurn {
				t.Errorf("%+v", r)
			}
		}
	})
	if len(d.said) != 3 || d.said[0] != "first" || d.said[1] != "second" || d.said[2] != "third" {
		t.Error(d.said)
	}
}

// The session's own prompt comes first, whatever was said while the agent started.
func TestThePromptComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &talker{cancelled: make(chan struct{}, 1)}
		s := newSession(&Host{Log: slog.New(slog.DiscardHandler), journal: newJournal(1<<20, 0)}, map[string]NewDriver{
			"talker": func(*Host) Driver { return d },
		})
		early := make(chan error, 1)
		go func() {
			_, err := s.message(t.Context(), wire.UserMessage{Content: "second"})
			early <- err
		}()
		synctest.Wait()
		if err := s.start(t.Context(), t.Context(), wire.Start{Agent: "talker", Prompt: "first"}); err != nil {
			t.Fatal(err)
		}
		if err := <-early; err != nil || len(d.said) != 2 || d.said[0] != "first" {
			t.Errorf("said %q, %v", d.said, err)
		}
		s.close(t.Context())
		s.running.Wait()
	})
}

func TestRepeatedMessageIsDeliveredOnce(t *testing.T) {
	d := &talker{}
	conversation(t, d, "", func(t *testing.T, s *session) {
		m := wire.UserMessage{Content: "hello", MessageID: "m1"}
		twin := make(chan wire.TurnResult)
		go func() {
			r, _ := s.message(t.Context(), m) // in flight: it shares the turn
			twin <- r
		}()
		synctest.Wait()
		first, err := s.message(t.Context(), m)
		if second := <-twin; err != nil || first.StopReason != StopEndTurn || second.StopReason != StopEndTurn {
			t.Errorf("%+v, %+v, %v", first, second, err)
		}
		if r, err := s.message(t.Context(), m); err != nil || !r.Duplicate || r.StopReason != wire.StopDuplicate {
			t.Errorf("%+v, %v", r, err)
		}
	})
	if len(d.said) != 1 {
		t.Error(d.said)
	}
}

func TestSteeringIsDeclinedByAnAgentThatCannot(t *testing.T) {
	conversation(t, &talker{}, "work", func(t *testing.T, s *session) {
		r, err := s.message(t.Context(), wire.UserMessage{Content: "left", Steer: true})
		if err != nil || r.Steered == nil || *r.Steered || r.Reason == "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestCancelEndsTheTurnNotTheSession(t *testing.T) {
	conversation(t, &talker{}, "", func(t *testing.T, s *session) {
		answer := make(chan wire.TurnResult)
		go func() {
			r, _ := s.message(t.Context(), wire.UserMessage{Content: "long"})
			answer <- r
		}()
		synctest.Wait()
		s.cancel(t.Context())
		if r := <-answer; r.StopReason != StopCancelled {
			t.Errorf("%+v", r)
		}
		if r, err := s.message(t.Context(), wire.UserMessage{Content: "next"}); err != nil || r.StopReason != StopEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestWaitingMessagesAreTurnedAwayAtTheEnd(t *testing.T) {
	conversation(t, &talker{}, "first", func(t *testing.T, s *session) {
		answer := make(chan error)
		go func() {
			_, err := s.message(t.Context(), wire.UserMessage{Content: "too late"})
			answer <- err
		}()
		synctest.Wait()
		go s.close(t.Context())
		if err := <-answer; !errors.Is(err, errOver) {
			t.Error(err)
		}
		if _, err := s.message(t.Context(), wire.UserMessage{Content: "later"}); !errors.Is(err, errOver) {
			t.Error(err)
		}
	})
}

func TestLostAgentEndsTheSession(t *testing.T) {
	conversation(t, &talker{}, "", func(t *testing.T, s *session) {
		if _, err := s.message(t.Context(), wire.UserMessage{Content: "die"}); err == nil || err.Error() != "the agent has died" {
			t.Error(err)
		}
	})
}

func TestSessionThatFailsToStart(t *testing.T) {
	d := &talker{}
	d.startErr = errors.New("no such model")
	conversation(t, d, "hello", func(t *testing.T, s *session) {
		h := s.health()
		if h.HasSession || h.Readiness != failed || h.Error != "no such model" || h.FailureCode == "" {
			t.Errorf("%+v", h)
		}
	})
}
