package llm

import (
	"bytes"
	"encoding/json"
)

// Bounds of what a scan keeps.
const (
	keptDepth = 2        // members of the text's object and of its members
	keptKey   = 32       // bytes of a key
	keptValue = 32 << 10 // bytes of a value
	// keptText is how much one string counts as text: an image in base64 is one string,
	// and far fewer tokens than its bytes suggest.
	keptText = 64 << 10
)

// scan follows a JSON text that comes in pieces, of any size, and hands out the few
// values that this package reads. It does not judge the text: whoever gets it will.
type scan struct {
	// found is called with each known member: parent is empty for those of the text's
	// own object. raw is only valid during the call, and nil if the value is longer than
	// keptValue or not kept; size is its length.
	found func(parent, key string, raw []byte, size int)

	depth  int
	object [keptDepth + 1]bool   // whether the container at that depth is an object
	keys   [keptDepth + 1]string // the key last read at that depth, if known

	quoted, escaped bool
	wantKey, inKey  bool
	buf             []byte
	capturing       bool
	keeping         bool // not only counting
	captureDepth    int
	size            int
	length          int // of the string being read

	text int  // bytes of text in all strings
	done bool // the text's object or list is complete
	end  int  // where, in the piece that completed it
}

// known returns the names that this package looks for. Case does not count: a decoder
// that ignores it must not see more than we do. It changes key to lower case.
func known(key []byte) string {
	for i, c := range key {
		if 'A' <= c && c <= 'Z' {
			key[i] = c | 0x20
		}
	}
	switch string(key) {
	case "model":
		return "model"
	case "stream":
		return "stream"
	case "stream_options":
		return "stream_options"
	case "background":
		return "background"
	case "service_tier":
		return "service_tier"
	case "speed":
		return "speed"
	case "type":
		return "type"
	case "usage":
		return "usage"
	case "message":
		return "message"
	case "response":
		return "response"
	case "delta":
		return "delta"
	case "choices":
		return "choices"
	}
	return ""
}

// reset makes the scan ready for another text.
func (s *scan) reset() {
	*s = scan{found: s.found, buf: s.buf[:0], text: s.text}
}

// write takes the next piece. What follows a complete text is ignored.
func (s *scan) write(p []byte) {
	for i := 0; i < len(p) && !s.done; {
		if s.quoted {
			i += s.readString(p[i:])
			continue
		}
		s.step(p[i])
		if s.done {
			s.end = i
		}
		i++
	}
}

// readString takes bytes of a string, up to its closing quote at most, and returns how
// many.
func (s *scan) readString(p []byte) int {
	n, quote := 0, -1 // quote is the next one at or after n
	for n < len(p) && s.quoted {
		if s.escaped {
			s.escaped = false
			n++
			continue
		}
		if quote < n { // looked for once, not at every escape before it
			if quote = bytes.IndexByte(p[n:], '"'); quote < 0 {
				quote = len(p)
			} else {
				quote += n
			}
		}
		if back := bytes.IndexByte(p[n:quote], '\\'); back >= 0 {
			n += back + 1
			s.escaped = true
			continue
		}
		s.quoted = quote == len(p)
		n = min(quote+1, len(p))
	}
	s.length += n
	s.keep(p[:n])
	if !s.quoted {
		s.text += min(s.length, keptText)
		s.closeString()
	}
	return n
}

func (s *scan) closeString() {
	if !s.inKey {
		return
	}
	s.inKey = false
	raw := s.buf
	if bytes.IndexByte(raw, '\\') >= 0 {
		var plain string
		if json.Unmarshal(raw, &plain) != nil {
			plain = ""
		}
		s.keys[s.depth] = known([]byte(plain))
		return
	}
	s.keys[s.depth] = known(bytes.Trim(raw, `"`))
}

// keep remembers bytes of the key or value being read.
func (s *scan) keep(p []byte) {
	if s.inKey {
		if len(s.buf)+len(p) <= 6*keptKey { // escapes are six bytes
			s.buf = append(s.buf, p...)
		}
		return
	}
	if s.capturing {
		s.size += len(p)
		if s.keeping && s.size <= keptValue {
			s.buf = append(s.buf, p...)
		}
	}
}

// keepByte is keep for one byte, as nearly all outside of strings come.
func (s *scan) keepByte(c byte) {
	if s.inKey {
		s.buf = append(s.buf, c)
		return
	}
	if s.capturing {
		s.size++
		if s.keeping && s.size <= keptValue {
			s.buf = append(s.buf, c)
		}
	}
}

// step takes one byte outside of strings.
func (s *scan) step(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '"':
		s.quoted, s.length = true, 0
		if s.wantKey {
			s.wantKey, s.inKey, s.buf = false, true, s.buf[:0]
		}
		s.keepByte(c)
	case '{', '[':
		s.keepByte(c)
		s.open(c == '{')
	case '}', ']':
		s.close(c)
	case ',':
		s.endValue()
		s.keepByte(c)
		s.wantKey = s.tracked()
	case ':':
		s.keepByte(c)
		s.startValue()
	default:
		s.keepByte(c)
	}
}

// tracked reports whether the keys of the current container are read.
func (s *scan) tracked() bool {
	return !s.capturing && s.depth > 0 && s.depth <= keptDepth && s.object[s.depth]
}

func (s *scan) open(object bool) {
	s.depth++
	if s.depth <= keptDepth {
		s.object[s.depth] = object
		s.keys[s.depth] = ""
	}
	s.wantKey = s.tracked()
}

func (s *scan) close(c byte) {
	s.endValue()
	s.keepByte(c)
	s.wantKey = false
	if s.depth--; s.depth <= 0 {
		s.done = true
	}
}

func (s *scan) startValue() {
	s.wantKey = false
	if !s.tracked() || !wanted(s.depth, s.parent(), s.keys[s.depth]) {
		return
	}
	s.capturing, s.captureDepth, s.size, s.buf = true, s.depth, 0, s.buf[:0]
	// Of what the model says only the length is wanted.
	s.keeping = s.keys[s.depth] != "delta" && s.keys[s.depth] != "choices"
}

func (s *scan) endValue() {
	if !s.capturing || s.depth != s.captureDepth {
		return
	}
	s.capturing = false
	raw := s.buf
	if !s.keeping || s.size > keptValue {
		raw = nil
	}
	s.found(s.parent(), s.keys[s.depth], raw, s.size)
}

func (s *scan) parent() string {
	if s.depth == keptDepth {
		return s.keys[1]
	}
	return ""
}

// wanted reports whether a member's value is read, rather than its members looked at.
func wanted(depth int, parent, key string) bool {
	if depth == 1 {
		return key != "" && key != "message" && key != "response"
	}
	return (parent == "message" || parent == "response") && (key == "model" || key == "usage")
}
