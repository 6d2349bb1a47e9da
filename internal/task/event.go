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
	KindDenied     Kind = "denied"     // a network connection was refused: [Denied]
	KindPublished  Kind = "published"  // a commit or pull request is on GitHub: [Published]
	KindUsage      Kind = "usage"      // tokens and cost
	KindTurn       Kind = "turn"       // what came of one turn: [Turn]
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

// Permission is the payload of [KindPermission]: the agent waits for an [Input] of kind
// [InputPermission] that names the request and one of the options.
type Permission struct {
	RequestID string             `json:"requestId"`
	ToolCall  PermissionTool     `json:"toolCall"`
	Options   []PermissionOption `json:"options"`
	// Default is the option that is taken when nobody has answered by Deadline.
	Default  string    `json:"default"`
	Deadline time.Time `json:"deadline"`
}

// PermissionTool is what the agent wants to do.
type PermissionTool struct {
	ID    string          `json:"toolCallId,omitempty"`
	Title string          `json:"title"`
	Kind  string          `json:"kind,omitempty"` // ACP tool kind: execute, edit, ...
	Input json.RawMessage `json:"rawInput,omitempty"`
}

// PermissionOption is one possible answer. Kind is that of ACP: allow_once,
// allow_always, reject_once, reject_always.
type PermissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// The ids of the options that our own drivers offer, which are also their kinds.
const (
	AllowOnce   = "allow_once"
	AllowAlways = "allow_always"
	RejectOnce  = "reject_once"
)

// Tokens are counts of tokens and what they cost.
type Tokens struct {
	Input      int64 `json:"input_tokens"` // without those of the cache
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Thought    int64 `json:"thought_tokens"` // part of Output
	Total      int64 `json:"total_tokens"`   // Input, Output, CacheRead and CacheWrite
	Requests   int64 `json:"requests"`
	// CostUSD is what they cost by the price list, in US dollars. Unpriced counts the
	// requests to models that are not in it, which CostUSD leaves out.
	CostUSD  float64 `json:"cost_usd"`
	Unpriced int64   `json:"unpriced_requests,omitempty"`
}

// Add returns the sum.
func (t Tokens) Add(u Tokens) Tokens {
	return Tokens{
		Input: t.Input + u.Input, Output: t.Output + u.Output, CacheRead: t.CacheRead + u.CacheRead,
		CacheWrite: t.CacheWrite + u.CacheWrite, Thought: t.Thought + u.Thought, Total: t.Total + u.Total,
		Requests: t.Requests + u.Requests, CostUSD: t.CostUSD + u.CostUSD, Unpriced: t.Unpriced + u.Unpriced,
	}
}

// Usage is the payload of [KindUsage]: one request to a model, and the run's sum with it.
type Usage struct {
	Model   string `json:"model"`
	Request Tokens `json:"request"`
	Run     Tokens `json:"run"`
}

// Turn is the payload of [KindTurn]: what came of one prompt after its turns of the agent,
// which are more than one when the first reply could not be used.
type Turn struct {
	Number    int             `json:"turn"`                // of the prompt in its run, from 1
	MessageID string          `json:"messageId,omitempty"` // of the input; empty for the run's own prompt
	OK        bool            `json:"ok"`
	Text      string          `json:"text,omitempty"`  // the agent's last message
	Value     json.RawMessage `json:"value,omitempty"` // the validated reply, where a schema was asked for
	Attempts  int             `json:"attempts"`        // replies that were looked at; 1 is the first one fits
	// Degraded marks a reply that fits its schema, after others did not, only because it
	// says nothing: empty texts and lists, placeholders.
	Degraded bool   `json:"degraded,omitempty"`
	Category string `json:"category,omitempty"` // of Error, see the constants
	Error    string `json:"error,omitempty"`
}

// The categories of a turn that failed.
const (
	TurnEmpty     = "empty"                // twice without a word
	TurnRefused   = "refusal"              // the model refused
	TurnInvalid   = "invalid"              // the reply does not fit its schema
	TurnError     = "error"                // the agent failed
	TurnCancelled = "cancelled"            // interrupted
	TurnSilent    = "no_turn_output"       // out of time, without a sign of the agent
	TurnStalled   = "stalled_after_output" // out of time, silent after it had begun
	TurnBusy      = "active_at_budget"     // out of time, still at work
)

// Denied is the payload of [KindDenied]: connections to one place that were refused.
type Denied struct {
	Host   string `json:"host"`           // a name, or an address where no name was asked for
	Port   int    `json:"port,omitempty"` // 0: only the name was asked for
	Count  int    `json:"count"`          // refused since the last event of this place; at least 1
	Reason string `json:"reason"`         // one line, lower case
	Rule   string `json:"rule,omitempty"` // the rule that would allow it; empty: none could
}

// Published is the payload of [KindPublished]: what the host published for an agent.
type Published struct {
	Org    string `json:"org"`
	Name   string `json:"name"`
	Branch string `json:"branch"`
	SHA    string `json:"sha,omitempty"`  // the branch's last commit; empty for a pull request
	URL    string `json:"url"`            // of the commit, or of the pull request
	Pull   int    `json:"pull,omitempty"` // the number of the pull request; 0: it is a commit
}

// Notice is the payload of [KindNotice].
type Notice struct {
	Level   string `json:"level"` // info, warn, error
	Message string `json:"message"`
	// MessageID names the input that the notice tells was refused.
	MessageID string `json:"messageId,omitempty"`
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
