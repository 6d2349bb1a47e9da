package wire

import "encoding/json"

// Methods of ServiceRPC that are those of the public /command surface too.
const (
	MethodUserMessage = "user_message"        // UserMessage -> TurnResult, when the turn has ended
	MethodCancel      = "cancel"              // {} -> {"cancelled":true}: ends the turn
	MethodClose       = "close"               // {} -> {"closed":true}: ends the session
	MethodPermission  = "permission_response" // PermissionResponse -> {}
	MethodSetOption   = "set_config_option"   // ConfigOption -> {}
	MethodRefresh     = "refresh_session"     // renews credentials and MCP servers
	NotifyCancel      = "$/cancelRequest"     // RPCCancel, without an id: the caller waits no more
	RPCVersion        = "2.0"                 // the "jsonrpc" of every message
	StopDuplicate     = "duplicate_delivery"  // TurnResult.StopReason of a repeated message id
)

// JSON-RPC error codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeExecution      = -32000 // the method ran and could not do it
	CodeBusy           = -32002 // refresh while a turn is going on
)

// RPCRequest is one JSON-RPC message to PID 1. Without an ID it is a notification.
type RPCRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *uint64         `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
}

// RPCResponse answers the request of the same ID. Answers come in any order.
type RPCResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *uint64         `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

// RPCError is the error of an [RPCResponse].
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (e *RPCError) Error() string { return e.Message }

// RPCCancel is the parameter of [NotifyCancel].
type RPCCancel struct {
	ID uint64 `json:"id"`
}

// UserMessage is the parameter of [MethodUserMessage].
type UserMessage struct {
	Content   string          `json:"content"`
	MessageID string          `json:"messageId,omitempty"` // a repeated one is not delivered again
	Steer     bool            `json:"steer,omitempty"`     // into the turn that is going on
	Schema    json.RawMessage `json:"schema,omitempty"`    // JSON Schema of the reply
}

// TurnResult is the result of [MethodUserMessage].
type TurnResult struct {
	StopReason string `json:"stopReason,omitempty"` // end_turn, refusal, max_tokens, cancelled, error
	Duplicate  bool   `json:"duplicate,omitempty"`
	Steered    *bool  `json:"steered,omitempty"` // only of a steering message
	Reason     string `json:"reason,omitempty"`  // why it was not steered
	// Error is why the turn failed. On /command that is the error of the call.
	Error string `json:"error,omitempty"`
}

// PermissionResponse is the parameter of [MethodPermission].
type PermissionResponse struct {
	RequestID   string          `json:"requestId"`
	OptionID    string          `json:"optionId"`
	CustomInput string          `json:"customInput,omitempty"`
	Answers     json.RawMessage `json:"answers,omitempty"`
}

// ConfigOption is the parameter of [MethodSetOption].
type ConfigOption struct {
	ConfigID string `json:"configId"`
	Value    string `json:"value"`
}

// Follow is the first line of a stream of [ServiceEvents], from the host: frames
// with a number above From are wanted. It acknowledges those up to From. PID 1 then
// sends frames, and the host sends acknowledgements, eight bytes each, big endian:
// every frame up to that number is durable. A newer stream replaces the older one.
// PID 1 keeps the stream open after the last frame, for its acknowledgement.
type Follow struct {
	From uint64 `json:"from"`
}
