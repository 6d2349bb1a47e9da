package reply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Reason says why a text holds no reply.
type Reason string

// The reasons.
const (
	ReasonEmpty  Reason = "empty"  // there is no text
	ReasonFenced Reason = "fenced" // there is a code block, but it is not JSON
	ReasonProse  Reason = "prose"  // there are only words
)

// ExtractError is the error of [Extract].
type ExtractError struct {
	Reason Reason
	Detail string // of ReasonFenced: what is wrong with the block
}

// Error implements error: one line.
func (e *ExtractError) Error() string {
	switch e.Reason {
	case ReasonEmpty:
		return "it is empty"
	case ReasonFenced:
		return "its code block cannot be read: " + e.Detail
	}
	return "there is no JSON in it"
}

// Extract finds the JSON value that a text is meant to say. It looks, in this order, at
// the code blocks tagged json, at the other code blocks, at every object or array that
// stands in the text, and at the text as a whole. Where there are several, the first one
// that has the keys which s requires is taken, else the first. The bytes are those of the
// text: nothing is repaired. s may be nil.
//
// The work is proportional to the text: what does not parse is passed over as a whole, so
// that no part of a broken value is ever taken for the value.
func Extract(text string, s *Schema) (json.RawMessage, error) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
	if text == "" {
		return nil, &ExtractError{Reason: ReasonEmpty}
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	pick := picker{schema: s}
	tagged, others := fences(text)
	for _, block := range append(tagged, others...) {
		pick.whole(block)
	}
	if pick.best == nil {
		pick.scan(text)
	}
	if pick.best == nil {
		pick.whole(text)
	}
	switch {
	case pick.best != nil:
		return pick.best, nil
	case pick.fallback != nil:
		return pick.fallback, nil
	case len(tagged)+len(others) > 0:
		return nil, &ExtractError{ReasonFenced, pick.wrong}
	}
	return nil, &ExtractError{Reason: ReasonProse}
}

// picker takes one of several candidates.
type picker struct {
	schema         *Schema
	best, fallback json.RawMessage
	wrong          string // with the first code block
}

// whole considers a text that is a JSON document.
func (p *picker) whole(text string) {
	text = strings.TrimSpace(text)
	if p.best != nil {
		return
	}
	raw := []byte(text)
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		if p.wrong == "" {
			p.wrong = syntaxError(raw, err).Error()
		}
		return
	}
	p.consider(raw)
}

// consider takes raw if it has what it needs, and keeps the first one in any case.
func (p *picker) consider(raw json.RawMessage) {
	if p.schema == nil || len(p.schema.required) == 0 {
		p.best = raw
		return
	}
	var members map[string]json.RawMessage
	if raw[0] == '{' && json.Unmarshal(raw, &members) == nil {
		have := true
		for _, name := range p.schema.required {
			_, ok := members[name]
			have = have && ok
		}
		if have {
			p.best = raw
		}
	}
	if p.fallback == nil {
		p.fallback = raw
	}
}

// scan considers every object and array that stands in text.
func (p *picker) scan(text string) {
	for p.best == nil {
		i := strings.IndexAny(text, "{[")
		if i < 0 {
			return
		}
		text = text[i:]
		if !p.begins(text) {
			text = text[1:]
			continue
		}
		var raw json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text))
		if dec.Decode(&raw) == nil {
			p.consider(raw)
			text = text[dec.InputOffset():]
			continue
		}
		text = text[extent(text):]
	}
}

// begins reports whether an object or array seems to begin here: braces and brackets
// stand in prose, too.
func (p *picker) begins(text string) bool {
	rest := strings.TrimLeft(text[1:], " \t\r\n")
	if rest == "" {
		return false
	}
	if text[0] == '{' {
		return rest[0] == '"' || rest[0] == '}'
	}
	// Footnotes and links are no arrays that anybody asked for.
	return p.takesArray() && strings.IndexByte(`{["]-0123456789tfn`, rest[0]) >= 0
}

// takesArray reports whether the reply may be an array.
func (p *picker) takesArray() bool {
	if p.schema == nil {
		return true
	}
	sch := p.schema.compiled
	for sch.Ref != nil && sch.Types == nil {
		sch = sch.Ref
	}
	if sch.Types == nil {
		return len(p.schema.required) == 0 && sch.Properties == nil
	}
	return bytes.Contains([]byte(sch.Types.String()), []byte("array"))
}

// extent is the length of the broken value that text begins with: up to the bracket that
// closes it, or all of the text.
func extent(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// fences finds the code blocks of a text: those tagged json, and the others.
func fences(text string) (tagged, others []string) {
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		mark := fence(line)
		if mark == "" {
			continue
		}
		info := strings.TrimSpace(strings.TrimSpace(line)[len(mark):])
		var block string
		if inline, ok := strings.CutSuffix(info, mark); ok { // all in one line
			info, block, _ = strings.Cut(inline, " ")
		} else {
			block, text = body(text, mark)
		}
		if strings.EqualFold(strings.TrimSpace(info), "json") {
			tagged = append(tagged, block)
		} else {
			others = append(others, block)
		}
	}
	return tagged, others
}

// fence is the mark that a line begins with, if it is one of a code block.
func fence(line string) string {
	line = strings.TrimSpace(line)
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// body cuts text at the line that ends a block. A block that is not ended goes on to the
// end.
func body(text, mark string) (block, rest string) {
	for pos := 0; pos < len(text); {
		line, _, more := strings.Cut(text[pos:], "\n")
		end := fence(line)
		if strings.HasPrefix(end, mark) && strings.TrimSpace(line) == end {
			return text[:pos], text[min(pos+len(line)+1, len(text)):]
		}
		if pos += len(line) + 1; !more {
			break
		}
	}
	return text, ""
}
