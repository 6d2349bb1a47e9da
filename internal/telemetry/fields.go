package telemetry

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// members calls f with the members of a JSON object, in order. Values are passed over and
// not read: the parameters of a tool can be many megabytes, of which an event of telemetry
// has a word. Of what is no object, or is cut, f gets what there is.
func members(raw []byte, f func(key string, value []byte)) {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	for i++; ; i++ {
		start := space(raw, i)
		if start >= len(raw) || raw[start] != '"' {
			return
		}
		end := pastString(raw, start)
		colon := space(raw, end)
		if colon >= len(raw) || raw[colon] != ':' {
			return
		}
		from := space(raw, colon+1)
		to := pastValue(raw, from)
		f(unquote(raw[start:end]), raw[from:to])
		if i = space(raw, to); i >= len(raw) || raw[i] != ',' {
			return
		}
	}
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// pastString is the place behind the string that begins at i.
func pastString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		next := bytes.IndexByte(raw[i:], '"')
		if next < 0 {
			break
		}
		begin := i
		i += next
		escapes := 0
		for j := i - 1; j >= begin && raw[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
	return len(raw)
}

// pastValue is the place behind the value that begins at i.
func pastValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = pastString(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// maxShort is the longest string that is read of an event, as it stands there.
const maxShort = 1 << 10

// unquote reads a short string; of another value it makes "".
func unquote(raw []byte) string {
	if len(raw) > maxShort || len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // of what is no string nothing is read
	return s
}
