package cifollow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// world is a run, GitHub and a clock that goes on when somebody waits.
type world struct {
	t     *testing.T
	now   time.Time
	idle  time.Time // since when; zero: the agent works
	pulls []task.Published
	said  []task.Input
	told  []task.Notice
	gh    func(number int) (Pull, error)
	looks []time.Time
	// work is what the agent does about a message.
	work func(task.Input)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Unix(1_800_000_000, 0)}
	w.idle = w.now
	w.pulls = []task.Published{{Org: "acme", Name: "app", Pull: 7}}
	w.work = func(task.Input) {}
	return w
}

func (w *world) Idle(context.Context) (time.Time, bool)     { return w.idle, !w.idle.IsZero() }
func (w *world) Pulls() []task.Published                    { return w.pulls }
func (w *world) Said(context.Context) ([]task.Input, error) { return slices.Clone(w.said), nil }
func (w *world) Tell(_ task.Kind, payload any)              { w.told = append(w.told, payload.(task.Notice)) }
func (w *world) Look(_ context.Context, _, _ string, n int) (Pull, error) {
	w.looks = append(w.looks, w.now)
	return w.gh(n)
}

func (w *world) Say(_ context.Context, in task.Input) error {
	if slices.ContainsFunc(w.said, func(o task.Input) bool { return o.ID == in.ID }) {
		return nil
	}
	w.said = append(w.said, in)
	w.work(in)
	w.idle = w.now.Add(time.Minute) // the turn takes a minute
	return nil
}

func (w *world) watcher() *Watcher {
	return &Watcher{
		GitHub: w, Run: w, Now: func() time.Time { return w.now },
		Pause: func(ctx context.Context, d time.Duration) error {
			if d <= 0 {
				w.t.Fatal("it does not wait")
			}
			w.now = w.now.Add(d)
			return ctx.Err()
		},
	}
}

func (w *world) watch() {
	w.t.Helper()
	if err := w.watcher().Watch(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ids() []string {
	var ids []string
	for _, in := range w.said {
		ids = append(ids, in.ID)
	}
	return ids
}

// last is the last thing that people were told.
func (w *world) last() string {
	if len(w.told) == 0 {
		return ""
	}
	return w.told[len(w.told)-1].Message
}

func TestARunWithoutAPullRequestEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pulls = nil
	start := w.now
	w.watch()
	if w.now != start || len(w.looks) > 0 || len(w.told) > 0 {
		t.Errorf("waited %s, looks %v, told %v", w.now.Sub(start), w.looks, w.told)
	}
}

// The agent mends the check in its second round, and is left alone then.
func TestTheAgentIsAskedUntilItIsGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start, commits := w.now, 0
	w.work = func(task.Input) { commits++ }
	w.gh = func(int) (Pull, error) {
		p := failing("test")
		p.Head = fmt.Sprint("commit ", commits)
		if commits == 2 {
			p.Checks[0].Outcome = Fine
		}
		return p, nil
	}
	w.watch()
	if want := []string{"ci-follow-acme/app#7-1", "ci-follow-acme/app#7-2"}; !slices.Equal(w.ids(), want) {
		t.Errorf("said %q", w.ids())
	}
	if first := w.looks[0].Sub(start); first < DefaultIdle || first > DefaultIdle+DefaultPoll {
		t.Errorf("first look after %s", first)
	}
	if second := w.looks[1].Sub(w.looks[0]); second < DefaultIdle+time.Minute {
		t.Errorf("next look after %s", second)
	}
	if !strings.Contains(w.said[1].Text, "round 2 of 3") || !strings.Contains(w.last(), "no check failed") {
		t.Errorf("%q, %q", w.said[1].Text, w.last())
	}
}

func TestThereAreThreeRoundsAndNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gh = func(int) (Pull, error) {
		p := failing("test")
		p.Head = fmt.Sprint("commit ", len(w.said))
		return p, nil
	}
	w.watch()
	if len(w.said) != 3 || !strings.Contains(w.last(), "asked 3 times") {
		t.Errorf("said %q, %q", w.ids(), w.last())
	}
	w.watch() // whoever takes the run over
	if len(w.said) != 3 {
		t.Errorf("said %q", w.ids())
	}
}

// Whoever takes the run over between two rounds goes on with the next one; one who takes
// it over after a round that changed nothing does not repeat it.
func TestAnotherWatcherGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := "abc"
	w.gh = func(int) (Pull, error) { p := failing("test"); p.Head = head; return p, nil }
	for _, h := range []string{"abc", "abc", "def"} {
		head = h
		ctx, kill := context.WithCancel(t.Context())
		dies := len(w.said) + 1
		w.work = func(task.Input) {
			if len(w.said) == dies {
				kill()
			}
		}
		if err := w.watcher().Watch(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		kill()
	}
	if want := []string{"ci-follow-acme/app#7-1", "ci-follow-acme/app#7-2"}; !slices.Equal(w.ids(), want) {
		t.Errorf("said %q", w.ids())
	}
}

func TestChecksAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration
		asked int
		says  string
	}{
		"they end":    {30 * time.Minute, 1, "did not change"},
		"they do not": {100 * time.Hour, 0, "do not come to an end"},
	} {
		w := newWorld(t)
		start := w.now
		w.gh = func(int) (Pull, error) {
			p := failing("test")
			if w.now.Sub(start) < tt.takes {
				p.Checks[0].Outcome = Pending
			}
			return p, nil
		}
		w.watch()
		if len(w.said) != tt.asked || !strings.Contains(w.last(), tt.says) || w.now.Sub(start) > 3*time.Hour {
			t.Errorf("%s: said %q, told %q after %s", name, w.ids(), w.last(), w.now.Sub(start))
		}
	}
}

func TestAPullRequestThatIsOver(t *testing.T) {
	t.Parallel()
	for name, gh := range map[string]func(int) (Pull, error){
		"merged": func(int) (Pull, error) { p := failing("x"); p.State = Merged; return p, nil },
		"closed": func(int) (Pull, error) { p := failing("x"); p.State = Closed; return p, nil },
		"gone":   func(int) (Pull, error) { return Pull{}, errs.New("x", errs.NotFound, "", "gone") },
	} {
		w := newWorld(t)
		w.gh = gh
		w.watch()
		if len(w.said) > 0 || len(w.looks) != 1 || len(w.told) != 1 {
			t.Errorf("%s: said %q, told %+v", name, w.ids(), w.told)
		}
	}
}

func TestEachPullRequestHasItsRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pulls = append(w.pulls, task.Published{Org: "acme", Name: "lib", Pull: 7}, task.Published{Org: "acme", Name: "app", Pull: 8})
	w.gh = func(n int) (Pull, error) {
		if n == 8 {
			return Pull{State: Merged}, nil
		}
		return failing("test"), nil
	}
	w.watch()
	if want := []string{"ci-follow-acme/app#7-1", "ci-follow-acme/lib#7-1"}; !slices.Equal(w.ids(), want) {
		t.Errorf("said %q", w.ids())
	}
}

// GitHub that does not answer for a while is asked again; one that refuses is not.
func TestGitHubInTrouble(t *testing.T) {
	t.Parallel()
	down, refused := errs.New("x", errs.Unavailable, "", "down"), errs.New("x", errs.Auth, "", "no")
	for name, tt := range map[string]struct {
		err   error
		times int // 0: for ever
		said  int
		looks int
		says  string
	}{
		"for a while": {down, 3, 1, 5, "did not change"},
		"for ever":    {down, 1000, 0, maxFailures, "not followed further: down"},
		"refused":     {refused, 1000, 0, 1, "not followed further: no"},
	} {
		w := newWorld(t)
		w.gh = func(int) (Pull, error) {
			if len(w.looks) <= tt.times {
				return Pull{}, tt.err
			}
			return failing("test"), nil
		}
		w.watch()
		if len(w.said) != tt.said || len(w.looks) != tt.looks || !strings.Contains(w.last(), tt.says) {
			t.Errorf("%s: said %q, %d looks, told %+v", name, w.ids(), len(w.looks), w.told)
		}
	}
}

func TestMissingPermissionsAreToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gh = func(int) (Pull, error) {
		p := failing("test")
		p.Head, p.Missing = fmt.Sprint(len(w.said)), []string{"statuses", "checks", "checks"}
		return p, nil
	}
	w.watch()
	n := 0
	for _, told := range w.told {
		if strings.Contains(told.Message, "checks, statuses;") && told.Level == "warn" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("told %d times: %+v", n, w.told)
	}
}

func TestACancelEndsTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.idle = time.Time{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.watcher().Watch(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
