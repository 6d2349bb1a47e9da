package tui

import "bytes"

// fields visits the members of the JSON object that b begins with, until visit returns
// false. It does not check the JSON and takes one that is cut as far as it goes: it is
// there to look into a million lines, of which few are ever decoded.
func fields(b []byte, visit func(key, value []byte) bool) {
	if len(b) == 0 || b[0] != '{' {
		return
	}
	for b = b[1:]; ; {
		b = skipSpace(b)
		if len(b) == 0 || b[0] != '"' {
			return
		}
		n := skipString(b)
		key := bytes.Trim(b[:n], `"`)
		b = skipSpace(b[n:])
		if len(b) == 0 || b[0] != ':' {
			return
		}
		b = skipSpace(b[1:])
		n = skipValue(b)
		if !visit(key, b[:n]) {
			return
		}
		b = skipSpace(b[n:])
		if len(b) == 0 || b[0] != ',' {
			return
		}
		b = b[1:]
	}
}

// field is one member of an object, nothing if it has none of that name.
func field(b []byte, name string) (value []byte) {
	fields(b, func(k, v []byte) bool {
		if string(k) == name {
			value = v
			return false
		}
		return true
	})
	return value
}

// unquoted is a string without its quotes; what is escaped in it stays so.
func unquoted(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return nil
	}
	return v[1 : len(v)-1]
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// skipValue returns the length of the value that b begins with.
func skipValue(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return skipString(b)
	case '{', '[':
		return skipNested(b)
	}
	if i := bytes.IndexAny(b, ",}] \t\r\n"); i >= 0 {
		return i
	}
	return len(b)
}

// skipString returns the length of the string that b begins with, quotes included.
func skipString(b []byte) int {
	for i := 1; i < len(b); {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return len(b)
		}
		i += j
		slashes := 0
		for k := i - 1; k > 0 && b[k] == '\\'; k-- {
			slashes++
		}
		if i++; slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// skipNested returns the length of the object or list that b begins with. It counts
// instead of calling itself: how deep a sandbox nests is its own choice.
func skipNested(b []byte) int {
	depth := 0
	for i := 0; i < len(b); {
		switch b[i] {
		case '"':
			i += skipString(b[i:])
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}
