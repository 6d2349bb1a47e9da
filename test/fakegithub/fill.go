package fakegithub

import (
	"encoding/json"

	"github.com/getkin/kin-openapi/openapi3"
)

// fill adds to a value whatever the description says it must have, as little as it can
// be. The fake knows a few fields of a pull request; GitHub sends two hundred.
func (s *Server) fill(schema string, value map[string]any) any {
	// What the fake made has types of its own; the walk knows those of JSON.
	text, err := json.Marshal(value)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		s.t.Errorf("answer: %v", err)
	}
	return fill(s.spec.doc.Components.Schemas[schema].Value, plain)
}

func fill(s *openapi3.Schema, v any) any {
	object, isObject := v.(map[string]any)
	switch {
	case v != nil && !isObject:
		return v
	case v == nil && s.Nullable:
		return nil
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AllOf) > 0:
		for _, part := range s.AllOf {
			v = fill(part.Value, v)
		}
		return v
	case len(s.OneOf) > 0:
		return fill(s.OneOf[0].Value, v)
	case len(s.AnyOf) > 0:
		return fill(s.AnyOf[0].Value, v)
	case s.Type.Is("object") || len(s.Properties) > 0:
		return fillObject(s, object)
	}
	return least(s)
}

func fillObject(s *openapi3.Schema, object map[string]any) any {
	if object == nil {
		object = map[string]any{}
	}
	for _, name := range s.Required {
		if object[name] == nil && s.Properties[name] != nil {
			object[name] = fill(s.Properties[name].Value, nil)
		}
	}
	for name, v := range object {
		if inner, ok := v.(map[string]any); ok && s.Properties[name] != nil {
			object[name] = fill(s.Properties[name].Value, inner)
		}
	}
	return object
}

// least is the smallest value of a scalar or a list.
func least(s *openapi3.Schema) any {
	switch {
	case s.Type.Is("string") && s.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case s.Type.Is("string") && s.Format == "uri":
		return "https://github.com"
	case s.Type.Is("string"):
		return "x"
	case s.Type.Is("boolean"):
		return false
	case s.Type.Is("array"):
		return []any{}
	case s.Type.Is("integer"), s.Type.Is("number"):
		return 1
	}
	return map[string]any{}
}
