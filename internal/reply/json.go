package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxDigits   = 1000 // characters of a number
	maxExponent = 400  // either way: more than a float64 has
)

// limits of a JSON document.
type limits struct {
	bytes, depth, values int
}

// document is a JSON document with numbers as json.Number, never rounded, and what was
// seen on the way.
type document struct {
	value  any
	nested bool // a string called $id or id lies below the root: perhaps a schema of its own
	values int
}

// parse reads one JSON document within its limits. The errors say where.
func parse(raw []byte, lim limits) (document, error) {
	switch {
	case len(raw) > lim.bytes:
		return document{}, fmt.Errorf("it has %d bytes, more than %d", len(raw), lim.bytes)
	case !utf8.Valid(raw):
		return document{}, errors.New("it is not valid UTF-8")
	}
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return document{}, syntaxError(raw, err)
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(raw)), lim: lim}
	p.dec.UseNumber()
	p.doc.value = p.read()
	return p.doc, p.err
}

// syntaxError says in which line and column JSON ends to be JSON.
func syntaxError(raw []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	before := raw[:min(int(syntax.Offset), len(raw))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("it is not JSON: line %d, column %d: %w", line, column, err)
}

// parser builds a value of tokens. After the first error it only unwinds.
type parser struct {
	dec  *json.Decoder
	lim  limits
	doc  document
	path []string
	err  error
}

func (p *parser) token() json.Token {
	if p.err != nil {
		return nil
	}
	tok, err := p.dec.Token()
	if err != nil {
		p.err = err
	}
	return tok
}

// fail notes the first error, at the place that is being read.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("at %s: %w", pointer(p.path), fmt.Errorf(format, args...))
	}
}

func (p *parser) read() any {
	tok := p.token()
	if p.doc.values++; p.doc.values > p.lim.values {
		p.fail("there are more than %d values", p.lim.values)
	}
	switch tok := tok.(type) {
	case json.Delim:
		if len(p.path) >= p.lim.depth {
			p.err = fmt.Errorf("it is nested deeper than %d", p.lim.depth)
			return nil
		}
		if tok == '{' {
			return p.object()
		}
		return p.array()
	case json.Number:
		p.number(tok.String())
	}
	return tok
}

func (p *parser) object() any {
	obj := map[string]any{}
	for p.err == nil && p.dec.More() {
		name, _ := p.token().(string)
		p.path = append(p.path, name)
		if _, twice := obj[name]; twice {
			p.fail("the name occurs twice")
		}
		v := p.read()
		if _, text := v.(string); text && len(p.path) > 1 && (name == "$id" || name == "id") {
			p.doc.nested = true
		}
		obj[name] = v
		p.path = p.path[:len(p.path)-1]
	}
	p.token()
	return obj
}

func (p *parser) array() any {
	arr := []any{}
	for p.err == nil && p.dec.More() {
		p.path = append(p.path, strconv.Itoa(len(arr)))
		arr = append(arr, p.read())
		p.path = p.path[:len(p.path)-1]
	}
	p.token()
	return arr
}

// number refuses what cannot be computed exactly with little work.
func (p *parser) number(text string) {
	if len(text) > maxDigits {
		p.fail("the number has more than %d digits", maxDigits)
		return
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return
	}
	if exp, err := strconv.Atoi(text[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
		p.fail("the number %s is out of range: exponents go from -%d to %d", brief(text, 40), maxExponent, maxExponent)
	}
}

// pointer is a JSON pointer as people read it; the root is "the top".
func pointer(path []string) string {
	if len(path) == 0 {
		return "the top"
	}
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return brief(b.String(), 200)
}

// brief is one line of at most n characters.
func brief(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n]) + "…"
	}
	return text
}
