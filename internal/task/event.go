package task

import (
	"encoding/json"
	"time"
)

// Kind is the class of an event.
type Kind string

// The kinds of event. Readers keep unknown kinds and show them raw.
const (
	KindStep       Kind = "step"       // a step of the run began or ended: [Step]
	KindAgent      Kind = "agent"      // one ACP session/update, verbatim
	KindOutput     Kind = "output"     // output of a plain command: [Output]
	KindPermission Kind = "permission" // the agent asks for leave
	KindDenied     Kind = "denied"     // a network connection was refused
	KindUsage      Kind = "usage"      // tokens and cost
	KindNotice     Kind = "notice"     // a line for people: [Notice]
	KindFinished   Kind = "finished"   // the last event; carries the [Result]
)

// Event is one thing that happened in a run. Seq is gapless from 1 and assigned
// in one place, the runner. [KindFinished] is always the last.
type Event struct {
	Run    ID
	Seq    uint64
	At     time.Time
	Kind   Kind
	Method string          // JSON-RPC method of the stored line; empty is the kind's own
	Params json.RawMessage // one JSON object, already masked

	// EventID is the agent server's own number of the frame this event was made
	// from, 0 where the host made it. After a crash the runner reads the last one
	// from the log and asks for what follows. FirstEventID is set when several
	// frames were joined.
	EventID, FirstEventID uint64
}

// Step is the payload of [KindStep], in the words of the progress method.
type Step struct {
	Step   string `json:"step"`   // context, token, sandbox, clone, agent, follow, cleanup, ...
	Status string `json:"status"` // in_progress, completed, failed
	Label  string `json:"label"`
	Group  string `json:"group"`
	Detail string `json:"detail,omitempty"` // on failure at most 200 characters
}

// The statuses of a step.
const (
	StepInProgress = "in_progress"
	StepCompleted  = "completed"
	StepFailed     = "failed"
)

// Output is the payload of [KindOutput]: up to 64 KiB of one stream of a command.
// Exactly one of Stdout, Stderr and ExitCode is set.
type Output struct {
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Lines    int    `json:"lines,omitempty"` // how many line ends Stdout or Stderr holds
	// Encoding is "base64" when the bytes are not valid UTF-8, else empty: the log
	// keeps every byte.
	Encoding string `json:"encoding,omitempty"`
	// Continued marks a piece whose last line goes on in the next piece of the
	// same stream.
	Continued bool `json:"continued,omitempty"`
}

// Notice is the payload of [KindNotice].
type Notice struct {
	Level   string `json:"level"` // info, warn, error
	Message string `json:"message"`
}

// Sink takes the events of a run, in order. Emit is synchronous and never fails
// the run: a sink that cannot keep up or has lost its reader drops, remembers and
// re-reads from the journal, as its own documentation says. Emit must not retain
// ev.Params after it returns, except by copying.
type Sink interface {
	Emit(ev Event)
}

// SinkFunc makes a function a [Sink].
type SinkFunc func(Event)

// Emit implements [Sink].
func (f SinkFunc) Emit(ev Event) { f(ev) }

// Tee returns a Sink that hands every event to each of sinks in turn. Put the
// journal first: what a screen shows has then been written.
func Tee(sinks ...Sink) Sink {
	return SinkFunc(func(ev Event) {
		for _, s := range sinks {
			s.Emit(ev)
		}
	})
}
