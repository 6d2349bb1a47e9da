package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/Insights/insightscli/internal/errs"
)

const (
	maxSchema  = 1 << 20 // bytes
	maxNesting = 64      // of a schema
	// maxSubschemas bounds the values in a schema: the library compares each subschema
	// with each other one.
	maxSubschemas = 20_000
	maxPattern    = 4 << 10 // bytes of a regular expression
	// base is the address of a schema without one: what it refers to relatively is
	// looked for below.
	base = "schema:///reply/"
	root = base + "schema.json"
)

// Schema is a compiled JSON Schema. It may be used by several goroutines.
type Schema struct {
	raw      json.RawMessage
	compiled *jsonschema.Schema
	required []string
}

// Compile reads a JSON Schema. Its errors are usage errors of one line that say where.
func Compile(raw []byte) (*Schema, error) {
	doc, err := parse(raw, limits{maxSchema, maxNesting, maxSubschemas})
	if err != nil {
		return nil, schemaError(err)
	}
	switch doc.value.(type) {
	case map[string]any, bool:
	default:
		return nil, schemaError(errors.New("it is neither an object nor a truth value"))
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(nothing{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(root, doc.value); err != nil {
		return nil, schemaError(err)
	}
	compiled, err := c.Compile(root)
	if err != nil {
		return nil, schemaError(compileError(err))
	}
	g := graph{nested: doc.nested, state: map[*jsonschema.Schema]int{}}
	if err := g.walk(compiled); err != nil {
		return nil, schemaError(err)
	}
	s := &Schema{raw: slices.Clone(raw), compiled: compiled}
	s.required = required(compiled)
	return s, nil
}

func schemaError(err error) error {
	return errs.New("reply.Compile", errs.Usage, "", "the schema cannot be used: %w", err)
}

// Raw is the schema as it was given.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// RequiredKeys are the names that an object at the top must have.
func (s *Schema) RequiredKeys() []string { return slices.Clone(s.required) }

// required gathers the required names at the top, through references and allOf.
func required(sch *jsonschema.Schema) []string {
	var names []string
	queue, seen := []*jsonschema.Schema{sch}, map[*jsonschema.Schema]bool{}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		names = append(names, s.Required...)
		queue = append(append(queue, s.Ref), s.AllOf...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nothing is the loader of schemas that lie elsewhere.
type nothing struct{}

// Load implements jsonschema.URLLoader.
func (nothing) Load(address string) (any, error) { return nil, remoteError(address) }

type remoteError string

// Error implements error.
func (e remoteError) Error() string {
	return fmt.Sprintf("it refers to %q: only references within the schema are followed", strings.TrimPrefix(string(e), base))
}

// compileError makes the library's errors ours.
func compileError(err error) error {
	var (
		remote  remoteError
		invalid *jsonschema.SchemaValidationError
		pattern *jsonschema.InvalidRegexError
		missing *jsonschema.JSONPointerNotFoundError
		draft   *jsonschema.UnsupportedDraftError
		fit     *jsonschema.ValidationError
	)
	switch {
	case errors.As(err, &remote):
		return remote
	case errors.As(err, &pattern):
		return fmt.Errorf("at %s: the pattern %q is not one of Go: %w", fragment(pattern.URL), brief(pattern.Regex, 80), pattern.Err)
	case errors.As(err, &missing):
		return fmt.Errorf("it refers to %s, which is not there", fragment(missing.URL))
	case errors.As(err, &draft):
		return fmt.Errorf("it is of an unknown draft, %q", draft.URL)
	case errors.As(err, &invalid) && errors.As(invalid.Err, &fit):
		return &Mismatch{problems(fit)}
	}
	return errors.New(brief(strings.ReplaceAll(err.Error(), root, ""), 300))
}

// fragment is the place that a schema's address names.
func fragment(address string) string {
	_, frag, _ := strings.Cut(address, "#")
	if text, err := url.PathUnescape(frag); err == nil {
		frag = text
	}
	if frag == "" {
		return "the top"
	}
	return frag
}

// pattern is a regular expression with the size of its program.
type pattern struct {
	*regexp.Regexp
	size int
}

// compilePattern implements jsonschema.RegexpEngine.
func compilePattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("it has more than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) && strings.Contains(text, "(?") {
			return nil, fmt.Errorf("%s %q: it has no look-around and no back-references", bad.Code, bad.Expr)
		}
		return nil, err
	}
	size := len(text)
	if tree, err := syntax.Parse(text, syntax.Perl); err == nil {
		if prog, err := syntax.Compile(tree.Simplify()); err == nil {
			size = len(prog.Inst)
		}
	}
	return pattern{re, size}, nil
}
