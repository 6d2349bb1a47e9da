package task

import "encoding/json"

// InputKind says what somebody wants of a live run.
type InputKind string

// The kinds of input.
const (
	InputMessage    InputKind = "message"    // a follow-up turn
	InputSteer      InputKind = "steer"      // words into the turn that is going on
	InputInterrupt  InputKind = "interrupt"  // end the turn, not the run
	InputPermission InputKind = "permission" // the answer to a permission request
	InputOption     InputKind = "option"     // set a session option
	InputEnd        InputKind = "end"        // end an agent's run in order: Value is the state, Text the error
	InputCancel     InputKind = "cancel"     // end the run
)

// EndAfterTurn is the Name of an [InputEnd] that waits for the turn that is going on.
const EndAfterTurn = "after_turn"

// Input is one thing said to a live run. It is journalled before it is acted on.
type Input struct {
	ID     string          `json:"id"` // chosen by the sender; a repeated one is delivered once
	Kind   InputKind       `json:"kind"`
	Text   string          `json:"text,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"` // message: JSON Schema of the reply
	Name   string          `json:"name,omitempty"`   // permission: request id; option: its name
	Value  string          `json:"value,omitempty"`  // permission: option id; option: its value; message: what the sender remembers by it
}
