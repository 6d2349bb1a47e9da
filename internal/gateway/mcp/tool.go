package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is one tool that is served here.
type Tool struct {
	Name        string
	Description string          // for models: short and exact
	Schema      json.RawMessage // JSON Schema of the arguments, of type object
	ReadOnly    bool
	// Call does it. Its error is for the model: say what to do instead.
	Call func(ctx context.Context, args json.RawMessage) (text string, err error)
}

// newOwn returns the server of our own tools.
func (h *Hub) newOwn() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: Own, Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	for _, t := range append(h.ownTools(), h.cfg.Tools...) {
		s.AddTool(&sdk.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly},
		}, h.handler(t))
	}
	return s
}

func (h *Hub) handler(t Tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := h.bound(ctx, callTime)
		defer cancel()
		args := req.Params.Arguments
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		text, err := t.Call(ctx, args)
		if err != nil {
			return refusal(t.Name + " failed: " + err.Error()), nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
}

// refusal is a result that tells the model why not.
func refusal(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// decode reads arguments into v and refuses names that it does not know.
func decode(args json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("the arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the arguments do not fit: more than one value")
	}
	return nil
}
