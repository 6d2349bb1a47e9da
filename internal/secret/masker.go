package secret

import (
	"bytes"
	"strings"
)

const (
	// minLength is the least length of a value that is masked: replacing a shorter
	// one everywhere would blank ordinary text.
	minLength = 6
	// window is how many first bytes of a pattern the search looks at; no pattern is
	// shorter.
	window = 4
)

// Masker replaces secrets by [Hidden]: known values, in the forms in which programs
// print them, well-known kinds of token, and the values of the headers that carry
// credentials. It does not change after it was made and may be used by any number
// of goroutines.
//
// Every byte that belongs to a match is masked, also where matches overlap; touching
// matches that do not overlap give [Hidden] twice. What is masked does not depend on
// how a text is cut into chunks.
type Masker struct {
	patterns []pattern
	// byKey lists the patterns by their first four bytes, byFirst by their first.
	byKey   map[uint32][]int
	byFirst [256][]int
	// shift tells by two bytes of text how far the search may jump, 0 to window-1.
	shift *[1 << 16]uint8
	// maybe has a bit for (a hash of) every key of byKey.
	maybe *[1 << 10]uint64

	short []string
}

// pattern is one thing to look for. Its class decides what follows the text.
type pattern struct {
	class class
	text  string // headers: lower case
}

type class uint8

const (
	literal class = iota
	token         // text, then token characters
	header        // text in any case, then a separator and a value
	classes
)

// NewMasker returns a Masker of the given values. Empty ones are ignored; those
// shorter than six bytes are not masked, see [Masker.Short].
func NewMasker(values ...string) *Masker {
	m := &Masker{byKey: map[uint32][]int{}, shift: new([1 << 16]uint8), maybe: new([1 << 10]uint64)}
	for i := range m.shift {
		m.shift[i] = window - 1
	}
	seen := map[string]bool{}
	for _, v := range values {
		if len(strings.TrimSpace(v)) < minLength {
			if v != "" {
				m.short = append(m.short, v)
			}
			continue
		}
		for _, form := range formsOf(v) {
			if !seen[form] {
				seen[form] = true
				m.add(pattern{literal, form})
			}
		}
	}
	for _, p := range tokenPrefixes() {
		m.add(pattern{token, p})
	}
	for _, name := range headerNames() {
		m.add(pattern{header, name})
	}
	return m
}

// add enters a pattern into the tables of the search.
func (m *Masker) add(p pattern) {
	n := len(m.patterns)
	m.patterns = append(m.patterns, p)
	for _, head := range p.heads() {
		key := keyOf([]byte(head))
		m.byKey[key] = append(m.byKey[key], n)
		bit := hash(key)
		m.maybe[bit>>6] |= 1 << (bit & 63)
		for i := 1; i < window; i++ {
			pair := uint16(head[i-1])<<8 | uint16(head[i])
			m.shift[pair] = min(m.shift[pair], uint8(window-1-i))
		}
	}
	m.byFirst[p.text[0]] = append(m.byFirst[p.text[0]], n)
	if up := strings.ToUpper(p.text[:1])[0]; p.class == header && up != p.text[0] {
		m.byFirst[up] = append(m.byFirst[up], n)
	}
}

// heads returns the first bytes of a pattern, in every spelling.
func (p pattern) heads() []string {
	if p.class != header {
		return []string{p.text[:window]}
	}
	heads := []string{""}
	for _, c := range []byte(p.text[:window]) {
		var longer []string
		for _, h := range heads {
			longer = append(longer, h+string(c))
			if 'a' <= c && c <= 'z' {
				longer = append(longer, h+string(c-'a'+'A'))
			}
		}
		heads = longer
	}
	return heads
}

// Short returns the values that are too short to be masked, so that the user can be
// told.
func (m *Masker) Short() []string { return m.short }

// Mask returns text with its secrets masked. It returns text itself if there are
// none.
func (m *Masker) Mask(text []byte) []byte {
	s := m.Stream()
	out := s.Write(text)
	if s.Held() == 0 {
		return out
	}
	// Flush reuses the memory that out lies in.
	out = bytes.Clone(out)
	return append(out, s.Flush()...)
}

// Settled returns how many of the first bytes of text can be masked by themselves: what
// follows the text, and the rest of it, then are no part of a secret that begins before.
func (m *Masker) Settled(text []byte) int {
	sc := scan{m: m, text: text}
	sc.search()
	end := min(sc.keep, sc.hold)
	for moved := true; moved; {
		moved = false
		for _, sp := range sc.spans {
			if sp.at < end && (sp.end > end || sp.left > 0) {
				end, moved = sp.at, true
			}
		}
	}
	return end
}

// MaskString is Mask for a string, for error messages and the like.
func (m *Masker) MaskString(text string) string { return string(m.Mask([]byte(text))) }

// String implements fmt.Stringer: a Masker holds secrets and prints none.
func (*Masker) String() string { return "secret.Masker" }

// GoString implements fmt.GoStringer, for %#v.
func (*Masker) GoString() string { return "secret.Masker" }

// keyOf makes a number of the first four bytes of b.
func keyOf(b []byte) uint32 {
	_ = b[window-1]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// hash spreads a key over the bits of Masker.maybe.
func hash(key uint32) uint32 { return key * 0x9e3779b1 >> 16 }
