package reply

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// saysNothing reports whether a value that fits holds nothing but empty texts and lists,
// zeros and placeholders. What the schema leaves no choice about does not count either
// way.
func (s *Schema) saysNothing(raw json.RawMessage) bool {
	doc, err := parse(raw, limits{maxValue, maxDepth, maxWork})
	if err != nil {
		return false
	}
	n := leafCount{}
	n.look(s.compiled, doc.value, true)
	return n.full == 0 && (n.empty > 0 || len(s.required) > 0)
}

// leafCount counts the leaves of a value that say nothing, and the others.
type leafCount struct{ empty, full int }

func (n *leafCount) look(sch *jsonschema.Schema, v any, top bool) {
	sch = resolved(sch)
	if sch != nil && (sch.Const != nil || sch.Enum != nil && len(sch.Enum.Values) == 1) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && !top {
			n.empty++
		}
		for name, member := range v {
			n.look(memberSchema(sch, name), member, false)
		}
	case []any:
		if len(v) == 0 && !top {
			n.empty++
		}
		for _, item := range v {
			n.look(itemSchema(sch), item, false)
		}
	default:
		if isEmpty(v) {
			n.empty++
		} else {
			n.full++
		}
	}
}

// resolved follows references; nil where nothing is known.
func resolved(sch *jsonschema.Schema) *jsonschema.Schema {
	for sch != nil && sch.Ref != nil {
		sch = sch.Ref
	}
	return sch
}

func memberSchema(sch *jsonschema.Schema, name string) *jsonschema.Schema {
	if sch == nil {
		return nil
	}
	return sch.Properties[name]
}

func itemSchema(sch *jsonschema.Schema) *jsonschema.Schema {
	if sch == nil {
		return nil
	}
	if sch.Items2020 != nil {
		return sch.Items2020
	}
	items, _ := sch.Items.(*jsonschema.Schema)
	return items
}

// isEmpty reports whether a leaf says nothing.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		return ok && r.Sign() == 0
	case string:
		return isPlaceholder(v)
	}
	return false
}

// isPlaceholder reports whether a text stands for one that is missing.
func isPlaceholder(text string) bool {
	word := strings.ToLower(strings.Trim(text, " \t\r\n.,;:!?-–—_*`'\"<>[](){}…/\\"))
	if word == "" || strings.HasPrefix(word, "placeholder") || strings.HasPrefix(word, "lorem ipsum") {
		return true
	}
	return slices.Contains([]string{
		"n/a", "na", "none", "null", "nil", "nothing", "undefined", "unknown", "unspecified", "empty", "blank",
		"not available", "not applicable", "not specified", "not known", "no data", "no information",
		"todo", "tbd", "tba", "fixme", "xxx", "string", "text", "value", "example", "sample", "dummy", "test",
		"foo", "bar", "baz", "foobar", "your text here", "to be determined", "to be done",
	}, word)
}
