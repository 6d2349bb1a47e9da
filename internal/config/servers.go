package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// MCPServer is one entry of INSIGHTS_MCP_SERVERS, in the form that other tools write into
// an mcp.json.
type MCPServer struct {
	Type    string            `json:"type,omitempty"` // http, stdio; empty follows from the rest
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// parseServers reads a JSON object from name to server.
func parseServers(text string) (map[string]MCPServer, error) {
	servers, err := parseMapping[MCPServer](text, "server", "url, headers, command, args and env")
	if err != nil {
		return nil, err
	}
	for name, s := range servers {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("server %q: %w", name, err)
		}
	}
	return servers, nil
}

// parseMapping reads a JSON object from name to what has the given fields. Its errors never
// repeat a value, which may be a secret.
func parseMapping[T any](text, what, fields string) (map[string]T, error) {
	var all map[string]T
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&all); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("not a JSON object from name to %s (offset %d)", what, syntax.Offset)
		}
		return nil, fmt.Errorf("not a mapping from name to %s with %s: %s", what, fields, fieldOf(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON object")
	}
	return all, nil
}

// mappedNames is all that is shown of a mapping: the rest may hold secrets.
func mappedNames(text string) string {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return text // there is no such value: it was parsed before
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

func (s MCPServer) check() error {
	switch {
	case s.Type != "" && s.Type != "http" && s.Type != "stdio":
		return fmt.Errorf("type %q is neither http nor stdio", s.Type)
	case (s.URL == "") == (s.Command == ""):
		return errors.New("give url or command, one of them")
	case s.URL == "" && s.Type == "http", s.URL != "" && s.Type == "stdio":
		return fmt.Errorf("type %s does not suit what is given", s.Type)
	}
	if s.URL != "" {
		_, err := parseURL(s.URL)
		return err
	}
	return nil
}

// fieldOf is the part of a decoding error that holds no value.
func fieldOf(err error) string {
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		return typ.Field + " has the wrong form"
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(msg, "unknown field") {
		return msg
	}
	return "it has the wrong form"
}
