package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/reply"
)

const (
	maxScript   = 1 << 20 // bytes
	maxTurns    = 200     // in a script
	defaultEach = 20
	maxEach     = 200
)

// Script is a checked script. It is not changed by running it.
type Script struct {
	Title string
	turns []turn
	flags []Flag
}

// Flag is an option of `run`: a flag without its dashes, and its value.
type Flag struct{ Name, Value string }

// Flags are the options of the run, in a stable order.
func (s *Script) Flags() []Flag { return slices.Clone(s.flags) }

// First is the label of the first turn.
func (s *Script) First() string { return s.turns[0].label }

// turn is one entry of a script.
type turn struct {
	label  string
	prompt template
	name   template // of one turn of each
	schema json.RawMessage
	each   path
	max    int
	when   condition
}

// file is the form of a script.
type file struct {
	Title   string           `yaml:"title"`
	Agent   string           `yaml:"agent"`
	Model   string           `yaml:"model"`
	Repo    words            `yaml:"repo"`
	Branch  string           `yaml:"branch"`
	Scopes  string           `yaml:"scopes"`
	Options map[string]words `yaml:"options"`
	Turns   []struct {
		Label  string    `yaml:"label"`
		Prompt string    `yaml:"prompt"`
		Schema yaml.Node `yaml:"schema"`
		Each   string    `yaml:"each"`
		As     string    `yaml:"as"`
		Max    int       `yaml:"max"`
		When   string    `yaml:"when"`
	} `yaml:"turns"`
}

// words is one word or a list of them.
type words []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]string)(w))
	}
	var one string
	if err := n.Decode(&one); err != nil {
		return err
	}
	*w = words{one}
	return nil
}

// Load reads and checks a script. read gives the files that it names as schemas. Errors
// are usage errors.
func Load(raw []byte, read func(name string) ([]byte, error)) (*Script, error) {
	s, err := load(raw, read)
	if err != nil {
		return nil, errs.New("session.Load", errs.Usage, "", "the script cannot be used: %w", err)
	}
	return s, nil
}

func load(raw []byte, read func(name string) ([]byte, error)) (*Script, error) {
	if len(raw) > maxScript {
		return nil, fmt.Errorf("it has more than %d bytes", maxScript)
	}
	var f file
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, yamlError(err)
	}
	switch {
	case len(f.Turns) == 0:
		return nil, errors.New("it has no turns")
	case len(f.Turns) > maxTurns:
		return nil, fmt.Errorf("it has more than %d turns", maxTurns)
	}
	s := &Script{Title: f.Title, flags: f.flags()}
	var labels []string
	for i := range f.Turns {
		t, err := f.turn(i, labels, read)
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
		s.turns, labels = append(s.turns, t), append(labels, t.label)
	}
	return s, nil
}

// yamlError says in one line what is wrong, without the names of Go types.
func yamlError(err error) error {
	text := err.Error()
	var wrong *yaml.TypeError
	if errors.As(err, &wrong) && len(wrong.Errors) > 0 {
		text, _, _ = strings.Cut(wrong.Errors[0], " in type ")
		text, _, _ = strings.Cut(text, " into ")
	}
	return errors.New(strings.Join(strings.Fields(text), " "))
}

func (f *file) flags() []Flag {
	var flags []Flag
	add := func(name string, values ...string) {
		for _, v := range values {
			if v != "" {
				flags = append(flags, Flag{name, v})
			}
		}
	}
	add("title", f.Title)
	add("agent", f.Agent)
	add("model", f.Model)
	add("repo", f.Repo...)
	add("branch", f.Branch)
	add("scopes", f.Scopes)
	names := make([]string, 0, len(f.Options))
	for name := range f.Options {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, f.Options[name]...)
	}
	return flags
}

func validLabel(label string) bool {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`).MatchString(label) && label != "item" && label != "index"
}

// turn checks the i-th turn; labels are those before it.
func (f *file) turn(i int, labels []string, read func(string) ([]byte, error)) (turn, error) {
	in := &f.Turns[i]
	t := turn{label: in.Label, max: in.Max}
	switch {
	case !validLabel(in.Label):
		return t, fmt.Errorf("label %q is not a word of letters, digits, - and _", in.Label)
	case slices.Contains(labels, in.Label):
		return t, fmt.Errorf("label %q is there twice", in.Label)
	case strings.TrimSpace(in.Prompt) == "":
		return t, fmt.Errorf("%s has no prompt", in.Label)
	case in.Each == "" && (in.Max != 0 || in.As != ""):
		return t, fmt.Errorf("%s: max and as go with each", in.Label)
	case in.Max < 0 || in.Max > maxEach:
		return t, fmt.Errorf("%s: max goes up to %d", in.Label, maxEach)
	}
	if t.max == 0 {
		t.max = defaultEach
	}
	return t, t.fill(in.Prompt, in.As, in.Each, in.When, scope{labels, in.Each != ""}, func() (err error) {
		t.schema, err = schema(&in.Schema, read)
		return err
	})
}

// fill parses the texts of a turn.
func (t *turn) fill(prompt, as, each, when string, sc scope, schema func() error) (err error) {
	outer := scope{labels: sc.labels}
	if t.prompt, err = parseTemplate(prompt, sc); err != nil {
		return fmt.Errorf("%s: prompt: %w", t.label, err)
	}
	if t.name, err = parseTemplate(as, sc); err != nil {
		return fmt.Errorf("%s: as: %w", t.label, err)
	}
	if each != "" {
		if t.each, err = parsePath(each, outer); err != nil {
			return fmt.Errorf("%s: each: %w", t.label, err)
		}
	}
	if t.when, err = parseCondition(when, outer); err != nil {
		return fmt.Errorf("%s: when: %w", t.label, err)
	}
	if err := schema(); err != nil {
		return fmt.Errorf("%s: %w", t.label, err)
	}
	return nil
}

// schema reads an inline schema or the file that is named.
func schema(n *yaml.Node, read func(string) ([]byte, error)) (json.RawMessage, error) {
	var raw []byte
	switch {
	case n.IsZero():
		return nil, nil
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		var err error
		if raw, err = read(n.Value); err != nil {
			return nil, err
		}
		raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	default:
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("the schema cannot be written as JSON: %w", err)
		}
	}
	s, err := reply.Compile(raw)
	if err != nil {
		return nil, err
	}
	return s.Raw(), nil
}
