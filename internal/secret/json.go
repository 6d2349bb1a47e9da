package secret

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// MaskJSON masks the text of a JSON value, so that it stays one: where masking the
// text would break it (a number that is a secret, a secret that reaches over a
// quote), each string is masked by itself. It returns text itself if there is
// nothing to mask.
func (m *Masker) MaskJSON(text []byte) []byte {
	masked := m.Mask(text)
	if len(masked) == len(text) && bytes.Equal(masked, text) {
		return text
	}
	if json.Valid(masked) || !json.Valid(text) {
		return masked
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	out, err := m.appendValue(nil, dec, false)
	if err != nil {
		return quote(nil, Hidden) // valid JSON always decodes
	}
	return out
}

// appendValue appends the next value of dec with every string in it masked; hide
// masks them whole, because they are the value of a header.
func (m *Masker) appendValue(dst []byte, dec *json.Decoder, hide bool) ([]byte, error) {
	tok, err := dec.Token()
	if err != nil {
		return dst, err
	}
	switch v := tok.(type) {
	case json.Delim:
		return m.appendContainer(dst, dec, v, hide)
	case string:
		return quote(dst, m.maskPart(v, hide)), nil
	case json.Number:
		if masked := m.maskPart(v.String(), hide); masked != v.String() {
			return quote(dst, masked), nil
		}
		return append(dst, v.String()...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	}
	return append(dst, "null"...), nil
}

func (m *Masker) maskPart(s string, hide bool) string {
	if hide && len(s) >= minLength {
		return Hidden
	}
	return m.MaskString(s)
}

func (m *Masker) appendContainer(dst []byte, dec *json.Decoder, open json.Delim, hide bool) ([]byte, error) {
	dst = append(dst, byte(open))
	for i := 0; dec.More(); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		within := hide
		if open == '{' {
			tok, err := dec.Token()
			if err != nil {
				return dst, err
			}
			key, _ := tok.(string) // what else is in this place is an error of dec
			within = hide || isHeaderName(key)
			dst = append(quote(dst, m.MaskString(key)), ':')
		}
		var err error
		if dst, err = m.appendValue(dst, dec, within); err != nil {
			return dst, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return dst, err
	}
	return append(dst, byte(open)+2), nil // '{' and '}', '[' and ']' are two apart
}

func isHeaderName(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(headerNames(), func(name string) bool { return strings.HasSuffix(key, name) })
}

func quote(dst []byte, s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return append(dst, b...)
}
