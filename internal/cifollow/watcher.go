package cifollow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
	"github.com/Insights/insightscli/internal/task"
)

// GitHub is what is read of GitHub.
type GitHub interface {
	// Look returns a pull request as it stands. What a missing permission hides is left
	// out, and named in Missing.
	Look(ctx context.Context, org, name string, number int) (Pull, error)
}

// Run is what is needed of a run.
type Run interface {
	// Idle is since when the agent has had nothing to do. It is false while it works, or is
	// about to.
	Idle(ctx context.Context) (since time.Time, idle bool)
	// Pulls are the pull requests that the run has opened, or pushed to.
	Pulls() []task.Published
	// Said are the messages to the run, in order, taken or not.
	Said(ctx context.Context) ([]task.Input, error)
	// Say says something to the run, unless a message with its ID was said before.
	Say(ctx context.Context, in task.Input) error
	// Tell writes an event into the run's log.
	Tell(kind task.Kind, payload any)
}

// The times and numbers of a Watcher, where its fields are 0.
const (
	DefaultIdle    = 15 * time.Minute
	DefaultPoll    = time.Minute
	DefaultPending = time.Hour
	DefaultRounds  = 3
)

const (
	// workPoll is how often it is looked whether the agent has come to rest: a run whose
	// agent opened no pull request must not wait to end.
	workPoll = 200 * time.Millisecond
	// maxFailures is how often GitHub may fail to answer, one time after the other.
	maxFailures = 10
)

// Watcher follows the pull requests of one run.
type Watcher struct {
	GitHub GitHub
	Run    Run

	Idle    time.Duration // rest of the agent before its pull requests are looked at
	Poll    time.Duration // between looks, while checks are going on
	Pending time.Duration // how long checks are waited for, after Idle
	Rounds  int           // for each pull request

	Now   func() time.Time                           // nil: the machine's clock
	Pause func(context.Context, time.Duration) error // nil: a timer

	failures int
	told     bool // which permissions are missing
}

// Watch returns when there is nothing more to wait for, or ctx is done.
func (w *Watcher) Watch(ctx context.Context) error {
	w.defaults()
	for {
		since, idle := w.Run.Idle(ctx)
		rested := w.Now().Sub(since)
		pause := workPoll
		switch {
		case !idle:
		case len(w.Run.Pulls()) == 0:
			return nil
		case rested < w.Idle:
			pause = min(w.Idle-rested, w.Poll)
		default:
			over, err := w.look(ctx, rested > w.Idle+w.Pending)
			if over || err != nil {
				return err
			}
			pause = w.Poll
		}
		if err := w.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

func (w *Watcher) defaults() {
	for field, value := range map[*time.Duration]time.Duration{&w.Idle: DefaultIdle, &w.Poll: DefaultPoll, &w.Pending: DefaultPending} {
		if *field <= 0 {
			*field = value
		}
	}
	if w.Rounds <= 0 {
		w.Rounds = DefaultRounds
	}
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.Pause == nil {
		w.Pause = ghclient.Pause
	}
}

// look looks at all pull requests once, and says what is to be said. It is over when none
// of them is to be followed further.
func (w *Watcher) look(ctx context.Context, late bool) (over bool, err error) {
	said, err := w.Run.Said(ctx)
	if err != nil {
		return false, err
	}
	pulls, err := w.pulls(ctx)
	if err != nil {
		return w.failed(ctx, err)
	}
	w.failures = 0
	w.tellMissing(pulls)
	over = true
	var why []string
	for _, p := range pulls {
		was := recall(p.String(), said)
		next, reason := decide(&p, was, w.Rounds, late)
		switch next {
		case ask:
			over = false
			if err := w.ask(ctx, &p, was.rounds+1); err != nil {
				return false, err
			}
		case wait:
			over = false
		case done:
			why = append(why, p.String()+": "+reason)
		}
	}
	if over {
		w.notice("info", "CI is not followed further: "+strings.Join(why, "; "))
	}
	return over, nil
}

// pulls are the pull requests of the run as they stand. One that is not there any more is
// closed.
func (w *Watcher) pulls(ctx context.Context) ([]Pull, error) {
	var all []Pull
	for _, at := range w.Run.Pulls() {
		p, err := w.GitHub.Look(ctx, at.Org, at.Name, at.Pull)
		if errs.KindOf(err) == errs.NotFound {
			p, err = Pull{State: Closed}, nil
		}
		if err != nil {
			return nil, err
		}
		p.Org, p.Name, p.Number = at.Org, at.Name, at.Pull
		all = append(all, p)
	}
	return all, nil
}

// failed decides what an error of GitHub means: it is asked again, unless it would say the
// same.
func (w *Watcher) failed(ctx context.Context, err error) (over bool, _ error) {
	w.failures++
	switch {
	case ctx.Err() != nil:
		return true, context.Cause(ctx)
	case errs.KindOf(err) == errs.Unavailable && w.failures < maxFailures:
		if w.failures == 1 {
			w.notice("warn", "CI cannot be looked at, and will be later: "+err.Error())
		}
		return false, nil
	}
	w.notice("warn", "CI is not followed further: "+err.Error())
	return true, nil
}

// ask asks the agent to mend a pull request.
func (w *Watcher) ask(ctx context.Context, p *Pull, round int) error {
	if err := w.Run.Say(ctx, message(p, round, prompt(p, round, w.Rounds))); err != nil {
		return fmt.Errorf("ask the agent about %s: %w", p, err)
	}
	w.notice("info", fmt.Sprintf("the agent is asked to mend %s (round %d of %d): %d checks failed, %d reviews ask for changes, %d conversations are not resolved",
		p, round, w.Rounds, len(p.with(Failed)), len(p.Reviews), len(p.Threads)))
	return nil
}

// tellMissing names the permissions that are missing, once.
func (w *Watcher) tellMissing(pulls []Pull) {
	var missing []string
	for _, p := range pulls {
		missing = append(missing, p.Missing...)
	}
	slices.Sort(missing)
	if missing = slices.Compact(missing); w.told || len(missing) == 0 {
		return
	}
	w.told = true
	w.notice("warn", fmt.Sprintf("CI is followed in part: the GitHub App or token has no permission to read %s; give it that on its settings page, and accept it where it is installed",
		strings.Join(missing, ", ")))
}

func (w *Watcher) notice(level, text string) {
	w.Run.Tell(task.KindNotice, task.Notice{Level: level, Message: text})
}
