package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/link/wire"
)

// maxMessageID bounds the id of a message, because ids are remembered.
const maxMessageID = 256

// call runs one method. public callers, those of /command, have no say over the
// server itself.
func (s *Server) call(ctx context.Context, method string, params json.RawMessage, public bool) (any, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(method, "_"), "insights/")
	if !public {
		switch name {
		case wire.MethodHealth:
			return s.hostHealth(), nil
		case wire.MethodThreads:
			return threads("/proc")
		case wire.MethodInspect:
			return inspect("/proc")
		case wire.MethodStart:
			return s.callStart(ctx, params)
		case wire.MethodGitHub:
			return s.callGitHub(params)
		case wire.MethodShutdown:
			s.drain(ctx) // the caller of this method stops the server when it has answered
			return struct{}{}, nil
		}
	}
	switch name {
	case wire.MethodUserMessage:
		result, err := s.callMessage(ctx, params)
		var failed *turnError
		if !public && errors.As(err, &failed) { // the message was delivered, which is what a host asks
			result.Error, err = brief(failed.reason), nil
		}
		return result, err
	case wire.MethodCancel:
		s.session.cancel(s.life)
		return map[string]bool{"cancelled": true}, nil
	case wire.MethodClose:
		s.session.close(ctx)
		return map[string]bool{"closed": true}, nil
	case wire.MethodPermission:
		return s.callPermission(params)
	case wire.MethodSetOption:
		return s.callSetOption(ctx, params)
	case wire.MethodRefresh:
		return s.callRefresh(ctx, params)
	}
	return nil, &wire.RPCError{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %q", method)}
}

// parse reads the parameters of a method. Unknown fields are somebody's newer ones.
func parse(params json.RawMessage, v any) error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, v); err != nil {
		return invalid("parameters: %v", err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &wire.RPCError{Code: wire.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func (s *Server) callStart(ctx context.Context, params json.RawMessage) (any, error) {
	var st wire.Start
	if err := parse(params, &st); err != nil {
		return nil, err
	}
	return struct{}{}, s.session.start(ctx, s.life, st)
}

// message is wire.UserMessage as outside clients may also write it.
type message struct {
	wire.UserMessage
	Content   json.RawMessage   `json:"content"` // text, or a list of blocks of text
	Artifacts []json.RawMessage `json:"artifacts"`
}

func (s *Server) callMessage(ctx context.Context, params json.RawMessage) (wire.TurnResult, error) {
	m, err := parseMessage(params)
	if err != nil {
		return wire.TurnResult{}, err
	}
	return s.session.message(ctx, m)
}

func parseMessage(params json.RawMessage) (wire.UserMessage, error) {
	var m message
	if err := parse(params, &m); err != nil {
		return wire.UserMessage{}, err
	}
	text, err := contentText(m.Content)
	m.UserMessage.Content = text
	if string(m.Schema) == "null" {
		m.Schema = nil
	}
	switch {
	case err != nil:
	case len(m.Artifacts) > 0:
		err = invalid("artifacts are not supported by this agent server: put the files into the workspace")
	case text == "":
		err = invalid("content is empty")
	case len(m.MessageID) > maxMessageID:
		err = invalid("messageId is longer than %d bytes", maxMessageID)
	case len(m.Schema) > 0 && m.Schema[0] != '{':
		err = invalid("schema is not a JSON Schema: it is not an object")
	case len(m.Schema) > 0 && m.Steer:
		err = invalid("words for the turn that is going on cannot have a schema")
	}
	return m.UserMessage, err
}

// contentText joins the text of a message.
func contentText(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 {
		return "", nil
	}
	if raw[0] != '[' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", invalid("content is neither text nor a list of blocks")
		}
		return text, nil
	}
	var blocks []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", invalid("content: %v", err)
	}
	var b strings.Builder
	for _, block := range blocks {
		if block.Type != "text" {
			return "", invalid("content blocks of type %q are not supported", block.Type)
		}
		b.WriteString(block.Text)
	}
	return b.String(), nil
}

func (s *Server) callPermission(params json.RawMessage) (any, error) {
	var r wire.PermissionResponse
	if err := parse(params, &r); err != nil {
		return nil, err
	}
	if r.RequestID == "" || r.OptionID == "" {
		return nil, invalid("requestId and optionId are needed")
	}
	return struct{}{}, s.session.host.Answer(r)
}

func (s *Server) callSetOption(ctx context.Context, params json.RawMessage) (any, error) {
	var o wire.ConfigOption
	if err := parse(params, &o); err != nil {
		return nil, err
	}
	if o.ConfigID == "" {
		return nil, invalid("configId is needed")
	}
	d, can := s.session.current().(Optioner)
	if !can {
		return nil, errors.New("this agent has no options")
	}
	return struct{}{}, d.SetOption(ctx, o)
}

func (s *Server) callRefresh(ctx context.Context, params json.RawMessage) (any, error) {
	if len(params) > 0 && !bytes.HasPrefix(bytes.TrimSpace(params), []byte("{")) {
		return nil, invalid("parameters are not an object")
	}
	if s.session.isActive() {
		return nil, &wire.RPCError{Code: wire.CodeBusy, Message: "a prompt is running"}
	}
	d, can := s.session.current().(Refresher)
	if !can {
		return struct{}{}, nil // nothing to renew
	}
	return struct{}{}, d.Refresh(ctx, params)
}

// rpcError is err as the other side is told it.
func rpcError(err error) *wire.RPCError {
	var e *wire.RPCError
	if errors.As(err, &e) {
		return e
	}
	return &wire.RPCError{Code: wire.CodeExecution, Message: err.Error()}
}
