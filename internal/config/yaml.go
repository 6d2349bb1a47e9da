package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readProjectYAML reads an insights.yaml, which comes with a repository.
func readProjectYAML(path string) (entries, error) { return readYAML(path, false) }

// readUserYAML reads the user's own config.yaml.
func readUserYAML(path string) (entries, error) { return readYAML(path, true) }

// readYAML reads insights.yaml or config.yaml: one flat mapping from the keys of
// the table to a scalar or, for a list, a sequence of scalars.
func readYAML(path string, users bool) (entries, error) {
	b, err := readFile(path)
	if err != nil || b == nil {
		return nil, err
	}
	var doc, more yaml.Node
	parser := yaml.NewDecoder(bytes.NewReader(b))
	switch err := parser.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil // nothing but comments
	case err != nil:
		return nil, yamlError(err)
	}
	switch err := parser.Decode(&more); {
	case err == nil:
		return nil, &lineError{line: more.Line, err: errors.New("a second document begins here; one is read")}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return nil, nil // nothing behind ---
	}
	if root.Kind != yaml.MappingNode {
		return nil, &lineError{line: root.Line, err: errors.New("expected KEY: VALUE lines")}
	}
	got := entries{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := got.addNode(root.Content[i], root.Content[i+1], users); err != nil {
			return nil, err
		}
	}
	return got, nil
}

func (e entries) addNode(key, value *yaml.Node, users bool) error {
	s, known := find(func(s Setting) bool { return s.Key != "" && s.Key == key.Value })
	if !known {
		return &lineError{line: key.Line, err: unknownKey(key.Value)}
	}
	if s.UserFile && !users {
		return &lineError{line: key.Line, err: fmt.Errorf("%q is read from your own config.yaml and the environment, not from a file that a repository may bring", key.Value)}
	}
	if _, twice := e[s.Name]; twice {
		return &lineError{line: key.Line, err: fmt.Errorf("key %q is given twice", key.Value)}
	}
	text, err := s.nodeText(value)
	if err != nil {
		return &lineError{line: value.Line, err: fmt.Errorf("%s: %w", key.Value, err)}
	}
	if text != "" {
		e[s.Name] = entry{text: text, line: key.Line}
	}
	return nil
}

// unknownKey explains a key that is not in the table; a setting that may not
// stand in a file says so.
func unknownKey(key string) error {
	s, ok := find(func(s Setting) bool { return strings.EqualFold(s.Name, key) })
	switch {
	case ok && s.Key != "":
		return fmt.Errorf("unknown key %q; here it is called %q", key, s.Key)
	case ok:
		return fmt.Errorf("%s is read from the environment, not from this file", s.Name)
	}
	return fmt.Errorf("unknown key %q", key)
}

// nodeText flattens the value of s to the text it would have in the environment.
func (s Setting) nodeText(n *yaml.Node) (string, error) {
	if !s.mapping() {
		return nodeText(n, s.Type == TypeMounts || s.Type == TypeList || s.Key == "scopes")
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return "", fmt.Errorf("expected a mapping from name to %s", strings.TrimSuffix(string(s.Type), "s"))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("expected a mapping from name to %s", strings.TrimSuffix(string(s.Type), "s"))
	}
	return string(b), nil
}

// nodeText flattens a value to the text it would have in the environment.
func nodeText(n *yaml.Node, list bool) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "", nil
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n.Kind != yaml.SequenceNode || !list:
		return "", errors.New("expected a single value")
	}
	var words []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			return "", errors.New("expected a list of single values")
		}
		words = append(words, item.Value)
	}
	return strings.Join(words, ","), nil
}

// yamlError moves the line out of the parser's message, which leaves it out for
// the first.
func yamlError(err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	m := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(msg)
	if m == nil {
		return &lineError{line: 1, err: errors.New(msg)}
	}
	line, _ := strconv.Atoi(m[1])
	return &lineError{line: line, err: errors.New(m[2])}
}
