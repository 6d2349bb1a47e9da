package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/cifollow"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/task"
)

// ci is a GitHub on which the check of a pull request fails until the agent has worked on
// it often enough.
type ci struct {
	mu      sync.Mutex
	commits int // that the agent has published
	green   int // with so many the check passes
	pending bool
	looks   int
}

func (c *ci) Look(_ context.Context, org, name string, number int) (cifollow.Pull, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	check := cifollow.Check{Name: "test", Outcome: cifollow.Failed, Says: "failure"}
	switch {
	case c.pending:
		check.Outcome = cifollow.Pending
	case c.commits >= c.green:
		check.Outcome = cifollow.Fine
	}
	return cifollow.Pull{
		Org: org, Name: name, Number: number, State: cifollow.Open, Head: fmt.Sprint("commit ", c.commits), Checks: []cifollow.Check{check},
	}, nil
}

// work is what the agent does in a turn: it publishes to its pull request.
func (c *ci) work(r steps.Reporter) {
	c.mu.Lock()
	c.commits++
	c.mu.Unlock()
	r.Tell(task.KindPublished, task.Published{Org: "acme", Name: "app", Branch: "work", URL: "https://github.com/acme/app/pull/7", Pull: 7})
}

// following is a rig whose runs are followed up on ci, with an agent that publishes in
// every turn and then does what reply says.
func following(t *testing.T, c *ci, reply func(r steps.Reporter, n int, text string) string) (*rig, func(*steps.Steps)) {
	t.Helper()
	var mu sync.Mutex
	var reporter steps.Reporter
	services := func(s *steps.Steps) {
		s.Services = func(_ context.Context, _ task.Spec, rep steps.Reporter) (steps.Services, error) {
			mu.Lock()
			defer mu.Unlock()
			reporter = rep
			return steps.Services{Follow: func(ctx context.Context, run steps.Followed) error {
				w := cifollow.Watcher{GitHub: c, Run: run, Idle: 20 * time.Millisecond, Poll: 20 * time.Millisecond, Pending: time.Hour}
				return w.Watch(ctx)
			}}, nil
		}
	}
	r := talkative(t, func(n int, text string) (string, wire.Outcome) {
		mu.Lock()
		rep := reporter
		mu.Unlock()
		return reply(rep, n, text), wire.Outcome{}
	})
	r.runner = r.newRunnerWith("me", services)
	return r, services
}

// rounds are the messages by which the agent was asked again, and that had their turn.
func (r *rig) rounds(run task.ID) []string {
	r.t.Helper()
	said, err := r.store.Messages(r.t.Context(), run)
	if err != nil {
		r.t.Fatal(err)
	}
	var ids []string
	for _, in := range said {
		turns := count(r.stored(run), func(ev task.Event) bool {
			return ev.Kind == task.KindTurn && strings.Contains(string(ev.Params), `"messageId":"`+in.ID+`"`)
		})
		ids = append(ids, fmt.Sprint(in.ID, " ", turns))
	}
	return ids
}

// A background run does not end after its turn while its checks fail and the agent mends
// them, not even when the agent has called its work done.
func TestARunGoesOnUntilItsChecksPass(t *testing.T) {
	for name, finishes := range map[string]bool{"quietly": false, "with finish": true} {
		t.Run(name, func(t *testing.T) {
			c := &ci{green: 3}
			var heard []string
			r, _ := following(t, c, func(rep steps.Reporter, n int, text string) string {
				heard = append(heard, text)
				c.work(rep)
				if finishes {
					if err := rep.End(t.Context(), task.StateCompleted, ""); err != nil {
						t.Error(err)
					}
				}
				return fmt.Sprint("commit ", n+1)
			})
			spec := r.prompt("")
			spec.IdleTimeout = task.Duration(time.Minute)
			res := r.ask(spec)
			if res.State != task.StateCompleted || res.Turn.Text != "commit 3" || res.IdleEnd {
				t.Errorf("result %+v, turn %+v", res, res.Turn)
			}
			if got, want := r.rounds(spec.Run), []string{"ci-follow-acme/app#7-1 1", "ci-follow-acme/app#7-2 1"}; !slices.Equal(got, want) {
				t.Errorf("rounds %q", got)
			}
			if len(heard) != 3 || !strings.Contains(heard[1], `"test": failure`) || !strings.Contains(heard[2], "round 2 of 3") {
				t.Errorf("heard %q", heard)
			}
		})
	}
}

// A run whose agent opened no pull request, or calls its work failed, ends as ever.
func TestARunWithNothingToFollow(t *testing.T) {
	c := &ci{}
	r, _ := following(t, c, func(steps.Reporter, int, string) string { return "hello" })
	if res := r.ask(r.prompt("")); res.State != task.StateCompleted || c.looks != 0 {
		t.Errorf("result %+v, %d looks", res, c.looks)
	}
	c = &ci{pending: true}
	r, _ = following(t, c, func(rep steps.Reporter, _ int, _ string) string {
		c.work(rep)
		if err := rep.End(t.Context(), task.StateFailed, "no"); err != nil {
			t.Error(err)
		}
		return "bye"
	})
	if res := r.ask(r.prompt("")); res.State != task.StateFailed || res.Error != "no" {
		t.Errorf("result %+v", res)
	}
}

// Waiting for checks is no lack of activity; before the wall clock would end the run, the
// waiting does, and the work is done.
func TestTheWaitForChecksEndsBeforeTheWallClock(t *testing.T) {
	c := &ci{pending: true}
	r, _ := following(t, c, func(rep steps.Reporter, _ int, _ string) string { c.work(rep); return "done" })
	spec := r.prompt("")
	spec.IdleTimeout, spec.Timeout = task.Duration(time.Second), task.Duration(4*time.Second)
	if res := r.ask(spec); res.State != task.StateCompleted || res.WallClockEnd || res.IdleEnd || c.looks < 2 {
		t.Errorf("result %+v, %d looks", res, c.looks)
	}
}

// The runner dies with a round that was recorded, or after it: the next one says the next
// round, and none twice.
func TestRoundsOutliveTheRunner(t *testing.T) {
	for name, finishes := range map[string]bool{"quietly": false, "with finish": true} {
		for at, marks := range map[string]string{
			"when it is recorded": "is asked to mend", "when it is heard": wire.EventUserMessage, "when its turn is over": `"messageId":"ci-follow-acme/app#7-1"`,
		} {
			t.Run(at+" "+name, func(t *testing.T) {
				c := &ci{green: 3}
				r, services := following(t, c, func(rep steps.Reporter, n int, _ string) string {
					c.work(rep)
					if finishes {
						_ = rep.End(context.WithoutCancel(t.Context()), task.StateCompleted, "") // a runner that has died records nothing
					}
					return fmt.Sprint("commit ", n+1)
				})
				spec := r.prompt("")
				r.dies(spec, func(ev task.Event) bool {
					return ev.Method == marks || ev.Kind != task.KindAgent && strings.Contains(string(ev.Params), marks)
				})
				if res := r.heir(spec.Run, services); res.State != task.StateCompleted || res.Turn.Text != "commit 3" {
					t.Errorf("result %+v, turn %+v", res, res.Turn)
				}
				if got, want := r.rounds(spec.Run), []string{"ci-follow-acme/app#7-1 1", "ci-follow-acme/app#7-2 1"}; !slices.Equal(got, want) {
					t.Errorf("rounds %q", got)
				}
			})
		}
	}
}
