package reply

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	maxValue = 4 << 20 // bytes of a reply
	maxDepth = 256     // of its nesting
	// maxWork bounds the checking: about a second. It is a thousand times what an
	// honest reply of a thousand items takes.
	maxWork = 1_000_000
	// maxProblems is how many problems are told.
	maxProblems = 5
)

// Mismatch is the error of a value that does not fit its schema.
type Mismatch struct {
	Problems []string // "at /items/0/name: got number, want string"; the first few
}

// Error implements error: one line.
func (m *Mismatch) Error() string { return strings.Join(m.Problems, "; ") }

// Check reports whether raw is a JSON document that fits the schema. The error is of one
// line and fit to be shown to people and to a model.
func (s *Schema) Check(raw []byte) error {
	doc, err := parse(raw, limits{maxValue, maxDepth, maxWork})
	if err != nil {
		return err
	}
	w := worker{known: map[pair]int{}}
	if w.count(s.compiled, doc.value, 0) > maxWork {
		return errors.New("it is too large to be checked against this schema")
	}
	err = s.compiled.Validate(doc.value)
	var fit *jsonschema.ValidationError
	if errors.As(err, &fit) {
		return &Mismatch{problems(fit)}
	}
	return err
}

// problem is one reason why a value does not fit.
type problem struct {
	path []string
	text string
}

// problems makes a short list of the library's tree of reasons, in the order of the
// places.
func problems(err *jsonschema.ValidationError) []string {
	list := leaves(err)
	slices.SortStableFunc(list, func(a, b problem) int {
		if c := slices.Compare(a.path, b.path); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	var lines []string
	for _, p := range list {
		line := "at " + pointer(p.path) + ": " + p.text
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - maxProblems; more > 0 {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// leaves gathers the reasons that have none below them. Of alternatives only the one that
// came nearest is told, which is where the reason lies deepest.
func leaves(err *jsonschema.ValidationError) []problem {
	switch err.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(err.Causes) > 0 {
			return nearest(err)
		}
	case *kind.PropertyNames: // the library's place is that of a neighbour
		return []problem{{nil, text(err)}}
	}
	if len(err.Causes) == 0 {
		return []problem{{slices.Clone(err.InstanceLocation), text(err)}}
	}
	var list []problem
	for _, cause := range err.Causes {
		list = append(list, leaves(cause)...)
	}
	return list
}

// nearest tells why none of several alternatives fits.
func nearest(err *jsonschema.ValidationError) []problem {
	var best []problem
	var want []string
	depth := -1
	for _, cause := range err.Causes {
		list := leaves(cause)
		if t, ok := cause.ErrorKind.(*kind.Type); ok && len(cause.InstanceLocation) == len(err.InstanceLocation) {
			want = append(want, t.Want...)
			if depth < 0 {
				depth, best = 0, list
			}
			continue
		}
		deepest := 1
		for _, p := range list {
			deepest = max(deepest, 1+len(p.path)-len(err.InstanceLocation))
		}
		if deepest > depth {
			depth, best = deepest, list
		}
	}
	if depth == 0 {
		got := err.Causes[0].ErrorKind.(*kind.Type).Got
		return []problem{{slices.Clone(err.InstanceLocation), fmt.Sprintf("got %s, want %s", got, strings.Join(want, " or "))}}
	}
	return best
}

// text is the reason alone, with numbers as they are.
func text(err *jsonschema.ValidationError) string {
	switch k := err.ErrorKind.(type) {
	case *kind.Minimum:
		return "it is " + exact(k.Got) + ", less than " + exact(k.Want)
	case *kind.Maximum:
		return "it is " + exact(k.Got) + ", more than " + exact(k.Want)
	case *kind.ExclusiveMinimum:
		return "it is " + exact(k.Got) + ", not more than " + exact(k.Want)
	case *kind.ExclusiveMaximum:
		return "it is " + exact(k.Got) + ", not less than " + exact(k.Want)
	case *kind.MultipleOf:
		return "it is " + exact(k.Got) + ", not a multiple of " + exact(k.Want)
	case *kind.Format:
		got, _ := k.Got.(string)
		return fmt.Sprintf("%q is not a %s: %s", brief(got, 40), k.Want, brief(k.Err.Error(), 100))
	case *kind.Pattern:
		return fmt.Sprintf("%q does not match the pattern %q", brief(k.Got, 40), brief(k.Want, 80))
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.Not:
		return "it fits what it must not be"
	case *kind.RefCycle:
		return "the schema leads back to itself"
	}
	if told := numbers(err.ErrorKind); told != "" {
		return told
	}
	alone := &jsonschema.ValidationError{InstanceLocation: nil, ErrorKind: err.ErrorKind}
	return brief(strings.TrimPrefix(alone.Error(), "at '': "), 200)
}

// numbers tells the reasons in which the library writes 5000 as 5,000.
func numbers(reason jsonschema.ErrorKind) string {
	told := func(what string, got, want int) string { return fmt.Sprintf("%s: got %d, want %d", what, got, want) }
	switch k := reason.(type) {
	case *kind.MinLength:
		return told("minLength", k.Got, k.Want)
	case *kind.MaxLength:
		return told("maxLength", k.Got, k.Want)
	case *kind.MinItems:
		return told("minItems", k.Got, k.Want)
	case *kind.MaxItems:
		return told("maxItems", k.Got, k.Want)
	case *kind.MinProperties:
		return told("minProperties", k.Got, k.Want)
	case *kind.MaxProperties:
		return told("maxProperties", k.Got, k.Want)
	case *kind.MinContains:
		return told("minContains", len(k.Got), k.Want)
	case *kind.MaxContains:
		return told("maxContains", len(k.Got), k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items at %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.AdditionalItems:
		return fmt.Sprintf("the last %d items are not allowed", k.Count)
	}
	return ""
}

// exact is a number in decimal digits.
func exact(r *big.Rat) string {
	n, ok := r.FloatPrec()
	if !ok {
		return r.RatString()
	}
	return brief(r.FloatString(n), 60)
}
