package task

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Stream names one output stream of a command; it is the field of [Output] that
// carries the bytes.
type Stream string

// The output streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// AppendOutput appends the parameters of an output event to dst: the JSON of an
// [Output] whose bytes are data. It is the hot path of every run, which is why it
// does not go through encoding/json: the same bytes, at a fraction of the cost.
func AppendOutput(dst []byte, stream Stream, data []byte, continued bool) []byte {
	dst = append(dst, `{"`...)
	dst = append(dst, stream...)
	dst = append(dst, `":"`...)
	valid := utf8.Valid(data)
	if valid {
		dst = appendEscaped(dst, data)
	} else {
		dst = base64.StdEncoding.AppendEncode(dst, data)
	}
	dst = append(dst, '"')
	if n := bytes.Count(data, []byte{'\n'}); n > 0 {
		dst = append(dst, `,"lines":`...)
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	if !valid {
		dst = append(dst, `,"encoding":"base64"`...)
	}
	if continued {
		dst = append(dst, `,"continued":true`...)
	}
	return append(dst, '}')
}

// appendEscaped appends valid UTF-8 as the inside of a JSON string.
func appendEscaped(dst, data []byte) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i, c := range data {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, data[start:i]...)
		start = i + 1
		switch c {
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '"', '\\':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	return append(dst, data[start:]...)
}

// Output decodes the payload of a [KindOutput] event.
func (ev Event) Output() (Output, error) {
	var o Output
	if err := json.Unmarshal(ev.Params, &o); err != nil {
		return Output{}, fmt.Errorf("output event %d: %w", ev.Seq, err)
	}
	return o, nil
}

// Bytes returns the bytes of an output event as the command wrote them, and the
// stream they were written to. Both are empty for an event that only carries an
// exit code.
func (o Output) Bytes() (Stream, []byte, error) {
	stream, text := Stdout, o.Stdout
	if o.Stderr != "" {
		stream, text = Stderr, o.Stderr
	}
	if o.Encoding == "" {
		return stream, []byte(text), nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return stream, nil, fmt.Errorf("output event: %w", err)
	}
	return stream, b, nil
}
