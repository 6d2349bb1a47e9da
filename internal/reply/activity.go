package reply

import (
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// stallTime of silence makes a turn a stalled one.
	stallTime = 300 * time.Second
	// lastWords is how long an agent that is being cancelled may still say something,
	// which is no sign that it was at work.
	lastWords = 20 * time.Second
)

// Activity is when the agent showed signs of life within a turn. Its own words and
// thoughts, its tools, its requests for leave and to a model do so; notices, output of
// the sandbox and the echo of the prompt do not.
type Activity struct {
	Began time.Time // of the turn
	Last  time.Time // zero: there was no sign
	// Quiet and Woke are the longest silence that is remembered: from Quiet, which is
	// Began where nothing was before, until Woke.
	Quiet, Woke time.Time

	// dropped says that the sign before the silence was a count of tokens whose cost is
	// not known: what agents send when their turn is done and its end gets lost.
	dropped bool
	costly  bool // the newest sign is such a count
	after   int  // signs since Woke
}

// sign notes a sign of life. unpriced says that it is a count of tokens without a cost.
func (a *Activity) sign(at time.Time, unpriced bool) {
	before := a.Last
	if before.IsZero() {
		before = a.Began
	}
	a.after++
	if at.Sub(before) >= stallTime {
		a.Quiet, a.Woke, a.dropped, a.after = before, at, a.costly, 1
	}
	a.Last, a.costly = at, unpriced
}

// Timeout classifies a turn that was out of time at now: task.TurnSilent,
// task.TurnStalled or task.TurnBusy.
func Timeout(a Activity, now time.Time) string {
	last := a.Last
	if !a.Woke.IsZero() && now.Sub(a.Woke) <= lastWords {
		last = a.Quiet // what came since is of its cancellation
		if last.Equal(a.Began) {
			return task.TurnSilent
		}
	}
	switch {
	case last.IsZero():
		return task.TurnSilent
	case now.Sub(last) >= stallTime:
		return task.TurnStalled
	}
	return task.TurnBusy
}

// salvaged reports whether a turn that ran out of time had been done, and only the news
// of its end was lost: long silence after a count of tokens without a cost, and at most
// one more sign after it. Its last message is then its reply.
func salvaged(a Attempt) bool {
	if !a.TimedOut || strings.TrimSpace(a.Text) == "" {
		return false
	}
	act := a.Activity
	if act.costly && a.Ended.Sub(act.Last) >= stallTime {
		return true
	}
	return act.dropped && act.after <= 1 && a.Ended.Sub(act.Woke) <= lastWords
}
