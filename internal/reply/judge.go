package reply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// The stop reasons that are told apart; any other is an error.
const (
	stopEndTurn   = "end_turn"
	stopRefusal   = "refusal"
	stopMaxTokens = "max_tokens"
	stopCancelled = "cancelled"
	stopError     = "error"
)

// Attempt is one finished turn of the agent, as far as it is judged.
type Attempt struct {
	StopReason string
	Text       string          // the agent's last message
	Structured json.RawMessage // the reply, where the agent gave it apart from its words
	Rejected   int             // replies that the agent itself found not to fit
	Err        string
	TimedOut   bool
	Ended      time.Time
	Activity   Activity
}

// Past is what came of the earlier attempts at the same prompt. The zero value is none.
type Past struct {
	Replies int // that were looked at, the agent's own rejected ones included
	Empty   int // turns without a word
	Invalid int // replies that did not fit
}

// retries is how often the prompt was asked again.
func (p Past) retries() int { return p.Empty + p.Invalid }

// Decision is what is to be done about an attempt: exactly one of Turn and Retry is set.
type Decision struct {
	Turn  *task.Turn // what came of the prompt, without its number and id
	Retry string     // the words by which to ask again, in the same session
	Past  Past       // with this attempt: for the judgement of the next
}

// Judge decides about one finished turn. s is nil where no schema was asked for.
func Judge(past Past, a Attempt, s *Schema) Decision {
	past.Replies += 1 + a.Rejected
	if salvaged(a) {
		a.StopReason, a.TimedOut, a.Err = stopEndTurn, false, ""
	}
	switch {
	case a.TimedOut:
		category := Timeout(a.Activity, a.Ended)
		return past.failed(category, timeoutText(a, category))
	case a.StopReason == stopRefusal:
		return past.failed(task.TurnRefused, "the model refused to answer")
	case a.StopReason == stopCancelled:
		return past.failed(task.TurnCancelled, "the turn was cancelled")
	case a.StopReason == stopError || a.Err != "":
		return past.failed(task.TurnError, orElse(a.Err, "the agent failed without a word"))
	case a.StopReason != stopEndTurn && a.StopReason != stopMaxTokens:
		return past.failed(task.TurnError, fmt.Sprintf("the agent stopped with %q", a.StopReason))
	}
	if string(bytes.TrimSpace(a.Structured)) == "null" {
		a.Structured = nil // no reply rather than this one
	}
	if strings.TrimSpace(a.Text) == "" && len(a.Structured) == 0 {
		if s != nil && a.Rejected > 0 {
			return past.rejected(a, s)
		}
		return past.empty(a, s)
	}
	if s == nil {
		text := orElse(a.Text, string(a.Structured))
		return Decision{Past: past, Turn: &task.Turn{OK: true, Text: text, Attempts: past.Replies}}
	}
	return past.checked(a, s)
}

// empty decides about a turn without a word.
func (p Past) empty(a Attempt, s *Schema) Decision {
	p.Empty++
	switch {
	case a.StopReason == stopMaxTokens:
		return p.failed(task.TurnEmpty, "the model reached its limit of tokens before it answered")
	case p.Empty > 1:
		return p.failed(task.TurnEmpty, "empty end_turn twice: the agent ended its turn without a word, also when asked again")
	case s != nil:
		return Decision{Past: p, Retry: "Your last turn ended without a reply. Reply now with the JSON only, " +
			"as the schema of the request has it: no other words, no code fence."}
	}
	return Decision{Past: p, Retry: "Your last turn ended without a reply. Give your answer now."}
}

// rejected decides about a turn whose replies the agent itself found not to fit, and
// which it then gave up: there were words, and they were wrong.
func (p Past) rejected(a Attempt, s *Schema) Decision {
	p.Replies-- // the turn had none but those
	if p.Invalid++; p.Invalid > 1 {
		return p.failed(task.TurnInvalid, fmt.Sprintf("no reply fitted the schema: the agent itself rejected %d and gave up", p.Replies))
	}
	return Decision{Past: p, Retry: fmt.Sprintf("None of your last %d replies fitted the schema. "+
		"Reply again with corrected JSON only. It must fit this JSON Schema:\n\n%s", a.Rejected, s.Raw())}
}

// checked decides about a reply that is to fit a schema.
func (p Past) checked(a Attempt, s *Schema) Decision {
	value, err := s.find(a)
	if err == nil {
		return Decision{Past: p, Turn: &task.Turn{
			OK: true, Text: a.Text, Value: value, Attempts: p.Replies,
			Degraded: p.Replies > 1 && s.saysNothing(value),
		}}
	}
	if p.Invalid++; p.Invalid > 1 {
		d := p.failed(task.TurnInvalid, err.Error())
		d.Turn.Text = a.Text
		return d
	}
	return Decision{Past: p, Retry: fmt.Sprintf("Your last reply cannot be used: %s.\n\n"+
		"Reply again with corrected JSON only: no other words, no code fence. It must fit this JSON Schema:\n\n%s",
		err.Error(), s.Raw())}
}

// find takes the value out of a reply and checks it. What the agent gave apart from its
// words goes first.
func (s *Schema) find(a Attempt) (json.RawMessage, error) {
	value := a.Structured
	if len(value) == 0 {
		var err error
		if value, err = Extract(a.Text, s); err != nil {
			return nil, err
		}
	}
	return value, s.Check(value)
}

func (p Past) failed(category, text string) Decision {
	return Decision{Past: p, Turn: &task.Turn{Attempts: p.Replies, Category: category, Error: text}}
}

func timeoutText(a Attempt, category string) string {
	text := orElse(a.Err, "the turn was out of time")
	switch category {
	case task.TurnSilent:
		return text + ": there was no sign of the agent"
	case task.TurnStalled:
		return text + ": the agent had begun, and then was silent"
	}
	return text + ": the agent was still at work"
}

func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}
