package codex

import (
	"encoding/json"
	"slices"
	"strings"
)

// schemaWords ask for a reply that fits a schema which the model's API does not take.
const schemaWords = "\n\nYour last message must be one JSON value that fits the following JSON Schema, and nothing else: " +
	"no words around it and no code fence.\n"

// The limits of the API for a schema.
const (
	maxDepth      = 10
	maxProperties = 5000
	maxEnum       = 1000
)

// supported are the keywords of the API's strict schemas.
var supported = []string{
	"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
	"definitions", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "minItems", "maxItems",
}

var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// node is the part of a schema that decides.
type node struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Items      json.RawMessage            `json:"items"`
	Enum       []json.RawMessage          `json:"enum"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	Ref        string                     `json:"$ref"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	Older      map[string]json.RawMessage `json:"definitions"`
	Format     string                     `json:"format"`
}

// strictSchema returns the schema as Codex can hand it to the model's API, which then
// keeps the model to it; false where that API would refuse it. Numbers stay as they are
// written.
func strictSchema(schema json.RawMessage) (json.RawMessage, bool) {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || root == nil {
		return nil, false
	}
	delete(root, "$schema")
	delete(root, "$id")
	plain, err := json.Marshal(root)
	if err != nil {
		return nil, false
	}
	s := strictness{}
	if !s.object(plain) || !s.node(plain, 0) {
		return nil, false
	}
	return plain, true
}

// strictness counts what is bounded over a whole schema.
type strictness struct{ properties, values int }

// object: the root must be one.
func (s *strictness) object(raw json.RawMessage) bool {
	var n node
	return json.Unmarshal(raw, &n) == nil && string(n.Type) == `"object"` && n.AnyOf == nil && n.Ref == ""
}

func (s *strictness) node(raw json.RawMessage, depth int) bool {
	var keys map[string]json.RawMessage
	var n node
	if depth > maxDepth || json.Unmarshal(raw, &keys) != nil || json.Unmarshal(raw, &n) != nil {
		return false
	}
	for key := range keys {
		if !slices.Contains(supported, key) {
			return false
		}
	}
	says := n.Type != nil || n.AnyOf != nil || n.Ref != "" && len(keys) == 1
	s.properties += len(n.Properties)
	s.values += len(n.Enum)
	switch {
	case !says, s.properties > maxProperties, s.values > maxEnum:
		return false
	case n.Ref != "" && !strings.HasPrefix(n.Ref, "#"):
		return false
	case n.Format != "" && !slices.Contains(formats, n.Format):
		return false
	case (isType(n.Type, "object") || n.Properties != nil) && !closed(n):
		return false
	case isType(n.Type, "array") && n.Items == nil:
		return false
	}
	return s.below(n, depth+1)
}

// below looks at the schemas within n. Definitions are not deeper than what uses them.
func (s *strictness) below(n node, depth int) bool {
	parts := slices.Clone(n.AnyOf)
	if n.Items != nil {
		parts = append(parts, n.Items)
	}
	for _, group := range []map[string]json.RawMessage{n.Properties, n.Defs, n.Older} {
		for _, part := range group {
			parts = append(parts, part)
		}
	}
	return !slices.ContainsFunc(parts, func(part json.RawMessage) bool { return !s.node(part, depth) })
}

// closed: an object has all of its properties and no others.
func closed(n node) bool {
	if string(n.Additional) != "false" || len(n.Required) != len(n.Properties) {
		return false
	}
	for name := range n.Properties {
		if !slices.Contains(n.Required, name) {
			return false
		}
	}
	return true
}

// isType reports whether a type, or one of a list of them, is name.
func isType(raw json.RawMessage, name string) bool {
	var one string
	var several []string
	switch {
	case json.Unmarshal(raw, &one) == nil:
		return one == name
	case json.Unmarshal(raw, &several) == nil:
		return slices.Contains(several, name)
	}
	return false
}
