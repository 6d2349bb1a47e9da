package reply

import (
	"fmt"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxChain bounds how many schemas may apply to one value through each other.
const maxChain = 128

// graph looks through a compiled schema for what cannot be checked within bounds.
type graph struct {
	nested bool                       // there may be several schemas in one
	state  map[*jsonschema.Schema]int // length of the longest chain from it; -1 while it is being found
}

// walk looks at sch and everything below it.
func (g *graph) walk(sch *jsonschema.Schema) error {
	if _, err := g.chain(sch); err != nil {
		return err
	}
	queue, seen := []*jsonschema.Schema{sch}, map[*jsonschema.Schema]bool{sch: true}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if (s.DynamicRef != nil || s.RecursiveRef != nil) && (g.nested || !isOurs(s)) {
			return fmt.Errorf("at %s: $dynamicRef and $recursiveRef are followed within one schema only", fragment(s.Location))
		}
		for _, next := range append(here(s), below(s)...) {
			if seen[next] {
				continue
			}
			seen[next] = true
			if _, err := g.chain(next); err != nil {
				return err
			}
			queue = append(queue, next)
		}
	}
	return nil
}

// isOurs tells the schema that was given from those of the drafts.
func isOurs(s *jsonschema.Schema) bool {
	return len(s.Location) >= len(root) && s.Location[:len(root)] == root
}

// chain is how many schemas apply, one through the other, to a value at sch.
func (g *graph) chain(sch *jsonschema.Schema) (int, error) {
	switch n, known := g.state[sch]; {
	case known && n < 0:
		return 0, fmt.Errorf("at %s: it leads back to itself without a step into the value", fragment(sch.Location))
	case known:
		return n, nil
	}
	g.state[sch] = -1
	longest := 0
	for _, next := range here(sch) {
		n, err := g.chain(next)
		if err != nil {
			return 0, err
		}
		longest = max(longest, n)
	}
	if longest++; longest > maxChain {
		return 0, fmt.Errorf("at %s: more than %d schemas lead to each other", fragment(sch.Location), maxChain)
	}
	g.state[sch] = longest
	return longest, nil
}

// here are the schemas that apply to the same value as s.
func here(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	for _, group := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		list = append(list, group...)
	}
	for _, sub := range s.DependentSchemas {
		list = append(list, sub)
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			list = append(list, sub)
		}
	}
	return present(list)
}

// below are the schemas that apply to parts of a value.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append(elements(s), s.PropertyNames, s.UnevaluatedProperties)
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		list = append(list, sub)
	}
	for _, sub := range s.Properties {
		list = append(list, sub)
	}
	for _, sub := range s.PatternProperties {
		list = append(list, sub)
	}
	return present(append(list, s.PrefixItems...))
}

// elements are the schemas that may apply to every element of an array.
func elements(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems}
	for _, items := range []any{s.Items, s.AdditionalItems} {
		switch items := items.(type) {
		case *jsonschema.Schema:
			list = append(list, items)
		case []*jsonschema.Schema: // each applies to one element: counting all is on the safe side
			list = append(list, items...)
		}
	}
	return present(list)
}

func present(list []*jsonschema.Schema) []*jsonschema.Schema {
	kept := list[:0]
	for _, s := range list {
		if s != nil {
			kept = append(kept, s)
		}
	}
	return kept
}

// worker counts the work of checking a value before it is done: an upper bound, in steps
// of less than a microsecond. Schemas that branch into each other make it exponential;
// the same schema at the same value is counted once and added often.
type worker struct {
	known map[pair]int
}

// pair is a schema at a container, which is told from others by where it is kept.
type pair struct {
	schema *jsonschema.Schema
	value  uintptr
}

// count is the work for v, at most a little more than maxWork. The schema has been
// looked through by graph: schemas at the same value do not go in circles.
func (w *worker) count(s *jsonschema.Schema, v any, depth int) int {
	key := pair{schema: s}
	switch v.(type) {
	case map[string]any, []any:
		key.value = reflect.ValueOf(v).Pointer()
		if n, ok := w.known[key]; ok {
			return n
		}
	}
	n := w.own(s, v, depth)
	for _, sub := range here(s) {
		n = w.add(n, sub, v, depth)
	}
	switch v := v.(type) {
	case map[string]any:
		n = w.members(n, s, v, depth+1)
	case []any:
		subs := append(elements(s), s.PrefixItems...)
		for _, item := range v {
			for _, sub := range subs {
				n = w.add(n, sub, item, depth+1)
			}
		}
	}
	n = min(n, maxWork+1)
	if key.value != 0 {
		w.known[key] = n
	}
	return n
}

func (w *worker) add(n int, s *jsonschema.Schema, v any, depth int) int {
	if n > maxWork || len(w.known) > maxWork {
		return maxWork + 1
	}
	return n + w.count(s, v, depth)
}

func (w *worker) members(n int, s *jsonschema.Schema, obj map[string]any, depth int) int {
	for name, v := range obj {
		if sub := s.Properties[name]; sub != nil {
			n = w.add(n, sub, v, depth)
		}
		for re, sub := range s.PatternProperties {
			n += cost(re, len(name))
			n = w.add(n, sub, v, depth)
		}
		if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			n = w.add(n, sub, v, depth)
		}
		if s.UnevaluatedProperties != nil {
			n = w.add(n, s.UnevaluatedProperties, v, depth)
		}
		if s.PropertyNames != nil {
			n = w.add(n, s.PropertyNames, name, depth)
		}
	}
	return n
}

// own is the work for one schema at one value without what is below. Depth counts because
// every problem that is found takes a copy of its path.
func (w *worker) own(s *jsonschema.Schema, v any, depth int) int {
	n := 1 + depth/4 + len(s.Required) + len(s.DependentRequired)
	if s.Enum != nil {
		n += len(s.Enum.Values)
	}
	switch v := v.(type) {
	case map[string]any:
		n += len(v)
	case []any:
		n += len(v)
		if s.UniqueItems {
			n += 20 * len(v)
		}
	case string:
		n += len(v) >> 10
		if s.Pattern != nil {
			n += cost(s.Pattern, len(v))
		}
	}
	return n
}

// cost is the work of matching a text of n bytes.
func cost(re jsonschema.Regexp, n int) int {
	if p, ok := re.(pattern); ok {
		return 1 + n*p.size/100
	}
	return 1 + n
}
