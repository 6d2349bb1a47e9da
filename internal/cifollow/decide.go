package cifollow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/task"
)

// step is what is to be done about a pull request.
type step int

const (
	wait step = iota
	ask       // the agent
	done      // for good
)

// past is what was said about a pull request before.
type past struct {
	rounds      int
	fingerprint string // of the last round
	threads     int    // that were unresolved then
}

// idOf is the beginning of the ids of the rounds of a pull request, which are known by
// them. The number of the round follows.
func idOf(pull string) string { return "ci-follow-" + pull + "-" }

// message is a round, with what has to be remembered of it.
func message(p *Pull, round int, text string) task.Input {
	return task.Input{
		ID: idOf(p.String()) + strconv.Itoa(round), Kind: task.InputMessage, Text: text,
		Value: p.fingerprint() + " " + strconv.Itoa(len(p.Threads)),
	}
}

// recall finds the rounds of a pull request in what was said to the run.
func recall(pull string, said []task.Input) past {
	var was past
	for _, in := range said {
		number, ours := strings.CutPrefix(in.ID, idOf(pull))
		round, err := strconv.Atoi(number)
		if !ours || err != nil || round <= was.rounds {
			continue
		}
		fingerprint, threads, _ := strings.Cut(in.Value, " ")
		was = past{rounds: round, fingerprint: fingerprint}
		was.threads, _ = strconv.Atoi(threads) // ours, or it is none
	}
	return was
}

// decide says what is to be done, and why it is over. late says that checks had all the
// time that they get.
func decide(p *Pull, was past, rounds int, late bool) (step, string) {
	pending, failed := len(p.with(Pending)), len(p.with(Failed))
	mendable := failed > 0 || len(p.Reviews) > 0
	switch {
	case p.State != Open:
		return done, "it is " + string(p.State)
	case was.rounds >= rounds:
		return done, fmt.Sprintf("the agent was asked %d times", was.rounds)
	case pending > 0 && !late:
		return wait, ""
	case mendable && p.fingerprint() != was.fingerprint, len(p.Threads) > was.threads:
		return ask, ""
	case mendable:
		return done, "the agent was asked about what failed, and did not change it"
	case pending > 0:
		return done, fmt.Sprintf("%d checks do not come to an end", pending)
	case len(p.Checks) == 0:
		return done, "there are no checks, and nobody asks for changes"
	}
	return done, "no check failed, and nobody asks for changes"
}
