package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// question is a request with two options.
func question(id string) task.Permission {
	return task.Permission{
		RequestID: id, ToolCall: task.PermissionTool{Title: "rm -rf build", Input: json.RawMessage(`{}`)},
		Options: []task.PermissionOption{
			{ID: "yes", Name: "Yes", Kind: task.AllowOnce}, {ID: "no", Name: "No", Kind: task.RejectOnce},
		},
		Default: "no",
	}
}

func answer(id, option string) wire.PermissionResponse {
	return wire.PermissionResponse{RequestID: id, OptionID: option}
}

// asking asks a question of a run that somebody watches, in a bubble of fake time.
func asking(t *testing.T, p task.Permission, test func(ctx context.Context, h *Host)) (option string, took time.Duration, h *Host, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h = newHost()
		h.Attended = true
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			begin := time.Now()
			option, err = h.Ask(ctx, p)
			took = time.Since(begin)
		}()
		synctest.Wait()
		test(ctx, h)
		<-done
		if len(h.asked.waiting) != 0 {
			t.Error("the request waits on")
		}
	})
	return option, took, h, err
}

// resolved is what the journal says of the end of the question.
func resolved(t *testing.T, h *Host) string {
	t.Helper()
	frames, _ := h.journal.after(nil, 0, 100)
	last := frames[len(frames)-1]
	if last.Method != wire.EventPermitted {
		t.Fatalf("the last event is %s", last.Method)
	}
	return string(last.Data)
}

func TestAnswerIsGiven(t *testing.T) {
	option, took, h, err := asking(t, question("q"), func(_ context.Context, h *Host) {
		for _, tt := range []struct {
			give wire.PermissionResponse
			want string
		}{
			{answer("other", "yes"), "not found"},
			{answer("q", "maybe"), "not offered"},
			{answer("q", "yes"), ""},
			{answer("q", "no"), "answered already"},
			{answer("q", "yes"), ""}, // sent again after a lost link
		} {
			err := h.Answer(tt.give)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: %v", tt.give, err)
			}
		}
	})
	if err != nil || option != "yes" || took != 0 {
		t.Errorf("%q after %v, %v", option, took, err)
	}
	if got := resolved(t, h); got != `{"by":"user","optionId":"yes","requestId":"q"}` {
		t.Error(got)
	}
}

func TestDeadlineTakesTheDefault(t *testing.T) {
	option, took, h, err := asking(t, question("q"), func(context.Context, *Host) {})
	if err != nil || option != "no" || took != askTime {
		t.Errorf("%q after %v, %v", option, took, err)
	}
	if got := resolved(t, h); got != `{"by":"default","optionId":"no","requestId":"q"}` {
		t.Error(got)
	}
	if err := h.Answer(answer("q", "yes")); !errors.Is(err, errAnswered) {
		t.Error(err)
	}
}

func TestQuestionEndsWithItsTurn(t *testing.T) {
	var cancel context.CancelFunc
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.Attended = true
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		option, err := h.Ask(ctx, question("q"))
		if option != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("%q, %v", option, err)
		}
		if got := resolved(t, h); got != `{"by":"cancelled","optionId":"","requestId":"q"}` {
			t.Error(got)
		}
		if err := h.Answer(answer("q", "yes")); !errors.Is(err, errAnswered) {
			t.Error(err)
		}
	})
}

// TestLastMomentAnswerCounts: who was told that the answer is taken must be able to rely
// on it, though the deadline passed at the same time.
func TestLastMomentAnswerCounts(t *testing.T) {
	for range 20 {
		option, _, _, err := asking(t, question("q"), func(_ context.Context, h *Host) {
			pass(askTime) // the timer and this one fire together
			given := h.Answer(answer("q", "yes"))
			synctest.Wait()
			if got := resolved(t, h); (given == nil) != strings.Contains(got, `"yes"`) {
				t.Errorf("%v, %s", given, got)
			}
		})
		if err != nil {
			t.Errorf("%q, %v", option, err)
		}
	}
}

func TestUnattendedRunTakesTheDefaultAtOnce(t *testing.T) {
	for name, tt := range map[string]struct{ def, want string }{
		"its default":           {"yes", "yes"},
		"no default":            {"", "no"},
		"a default not offered": {"always", "no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, p, begin := newHost(), question(""), time.Now()
			p.Default = tt.def
			option, err := h.Ask(t.Context(), p)
			if err != nil || option != tt.want || time.Since(begin) != 0 {
				t.Errorf("%s: %q, %v", name, option, err)
			}
			wantTold(t, h, wire.EventPermission, wire.EventPermitted)
		})
	}
}

func TestQuestionStandsAfterWhatItIsAbout(t *testing.T) {
	h := newHost()
	must(t, h.Text(t.Context(), saying, "May I?"))
	must(t, h.Update(t.Context(), snapshot("1", "in_progress", "a")))
	must(t, h.Update(t.Context(), snapshot("1", "in_progress", "b")))
	p := question("q")
	long, _ := json.Marshal(strings.Repeat("x", 2<<20))
	p.ToolCall.Input = long
	if _, err := h.Ask(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantTold(t, h, saying+":May I?", "tool_call_update:in_progress", "tool_call_update:in_progress", wire.EventPermission, wire.EventPermitted)
}

func TestQuestionsThatAreNone(t *testing.T) {
	h := newHost()
	if _, err := h.Ask(t.Context(), task.Permission{RequestID: "q"}); err == nil {
		t.Error("asked without options")
	}
	_, _, _, err := asking(t, question("q"), func(ctx context.Context, h *Host) {
		if _, err := h.Ask(ctx, question("q")); err == nil {
			t.Error("two questions have one id")
		}
		_ = h.Answer(answer("q", "no"))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWordsBesideTheOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.Attended = true
		time.AfterFunc(time.Second, func() {
			_ = h.Answer(wire.PermissionResponse{RequestID: "q", OptionID: "no", CustomInput: "use make clean"})
		})
		if r, err := h.AskWords(t.Context(), question("q")); err != nil || r.OptionID != "no" || r.CustomInput != "use make clean" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestResolvedQuestionsAreBounded(t *testing.T) {
	h := newHost()
	for range 3 * remembered {
		if _, err := h.Ask(t.Context(), question("")); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.asked.resolved) != remembered || len(h.asked.order) != remembered {
		t.Errorf("%d are remembered", len(h.asked.resolved))
	}
}

// TestQuestionsThatWaitAreBounded: a hostile agent that asks without end fills neither our
// memory nor a terminal.
func TestQuestionsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.Attended = true
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 100)
		for range maxWaiting + 10 {
			go func() {
				_, err := h.Ask(ctx, question(""))
				refused <- err
			}()
		}
		synctest.Wait()
		if len(refused) != 10 || len(h.asked.waiting) != maxWaiting {
			t.Errorf("%d are refused and %d wait", len(refused), len(h.asked.waiting))
		}
		cancel()
		synctest.Wait()
		if len(h.asked.waiting) != 0 {
			t.Error("some wait on")
		}
	})
}
