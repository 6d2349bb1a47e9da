package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// scope is what a path may begin with.
type scope struct {
	labels []string
	each   bool // item and index
}

// path leads to a part of an earlier reply.
type path []string

func parsePath(text string, sc scope) (path, error) {
	p := path(strings.Split(strings.TrimSpace(text), "."))
	if slices.Contains(p, "") {
		return nil, fmt.Errorf("%q is not a path", text)
	}
	local := p[0] == "item" || p[0] == "index"
	switch {
	case local && !sc.each:
		return nil, fmt.Errorf("%s is there within each only", p[0])
	case !local && !slices.Contains(sc.labels, p[0]):
		return nil, fmt.Errorf("%q is not the label of an earlier turn", p[0])
	}
	return p, nil
}

// template is a text with paths in it: they stand between its parts.
type template struct {
	parts []string
	paths []path
}

func parseTemplate(text string, sc scope) (template, error) {
	var t template
	part := ""
	for {
		before, after, found := strings.Cut(text, "${")
		part += before
		if !found {
			t.parts = append(t.parts, part)
			return t, nil
		}
		if strings.HasSuffix(before, "$") { // $${ is a plain ${
			part, text = part+"{", after
			continue
		}
		inner, rest, closed := strings.Cut(after, "}")
		if !closed {
			return t, fmt.Errorf("${%.40s is not closed", after)
		}
		p, err := parsePath(inner, sc)
		if err != nil {
			return t, err
		}
		t.parts, t.paths = append(t.parts, part), append(t.paths, p)
		part, text = "", rest
	}
}

func (t template) empty() bool { return len(t.paths) == 0 && strings.Join(t.parts, "") == "" }

// values are the replies by label, and item and index.
type values map[string]any

// get follows a path.
func (v values) get(p path) (any, bool) {
	at, ok := v[p[0]]
	for _, name := range p[1:] {
		if !ok {
			return nil, false
		}
		switch in := at.(type) {
		case map[string]any:
			at, ok = in[name]
		case []any:
			n, err := strconv.Atoi(name)
			if ok = err == nil && n >= 0 && n < len(in); ok {
				at = in[n]
			}
		default:
			return nil, false
		}
	}
	return at, ok
}

// fill replaces the paths. What they lead to is put in as it is and not looked through
// again: a reply cannot name others.
func (t template) fill(v values) (string, error) {
	var b strings.Builder
	for i, part := range t.parts {
		b.WriteString(part)
		if i == len(t.paths) {
			break
		}
		at, ok := v.get(t.paths[i])
		if !ok {
			return "", fmt.Errorf("there is no %s", strings.Join(t.paths[i], "."))
		}
		b.WriteString(text(at))
	}
	return b.String(), nil
}

// text is a value in a prompt.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // values come from JSON: they marshal
	return strings.TrimSuffix(b.String(), "\n")
}

// condition decides whether a turn takes place. Without a path it does.
type condition struct {
	path  path
	not   bool
	equal bool // to word
	word  string
}

func parseCondition(text string, sc scope) (c condition, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return c, nil
	}
	if left, word, ok := strings.Cut(text, "!="); ok {
		c.not, c.equal, c.word, text = true, true, unquote(word), left
	} else if left, word, ok := strings.Cut(text, "=="); ok {
		c.equal, c.word, text = true, unquote(word), left
	} else if rest, ok := strings.CutPrefix(text, "!"); ok {
		c.not, text = true, rest
	}
	c.path, err = parsePath(text, sc)
	return c, err
}

func unquote(word string) string { return strings.Trim(strings.TrimSpace(word), `"'`) }

func (c condition) holds(v values) bool {
	if c.path == nil {
		return true
	}
	at, ok := v.get(c.path)
	if c.equal {
		return ok && (text(at) == c.word) != c.not
	}
	return (ok && isTrue(at)) != c.not
}

func isTrue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return strings.TrimSpace(v) != ""
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
