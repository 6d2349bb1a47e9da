package secret

import (
	"slices"
	"strings"
)

const (
	// minToken is how many token characters must follow the prefix of a token.
	minToken = 16
	// maxOpen bounds what is masked of a token or a header value: without a bound a
	// text without line ends could be swallowed for ever.
	maxOpen = 64 << 10
	// maxSeparator bounds what lies between the name of a header and its value.
	maxSeparator = 32
)

// span is a part of a text that is masked.
type span struct {
	start, end int
	at         int   // where the match begins: before start for a header
	class      class // of the match
	left       int   // how many more bytes it takes from what follows the text
}

// scan is the search for matches in one piece of text.
type scan struct {
	m     *Masker
	text  []byte
	final bool // nothing follows the text

	spans []span // matches, by the place where they were found
	// hold is where the first byte lies that what follows may make secret; behind it
	// nothing is decided.
	hold int
	// keep is where the first match begins that what follows may complete. It lies
	// before hold where the beginning is no secret: the name of a header.
	keep int
	// open tells by class how many more bytes a match takes that reaches the end of
	// the text, 0 if none does.
	open [classes]int
}

// run looks for everything in the text.
func (s *scan) run() {
	s.search()
	for _, sp := range s.spans {
		if sp.start >= s.hold {
			s.keep = min(s.keep, sp.at) // not decided: it is found again next time
		} else {
			s.open[sp.class] = max(s.open[sp.class], sp.left)
		}
	}
	s.merge()
}

// search finds everything that begins in the text. It is a search after Wu and
// Manber: two bytes of text tell how far the next possible beginning is away.
func (s *scan) search() {
	s.hold, s.keep = len(s.text), len(s.text)
	text, shift, maybe := s.text, s.m.shift, s.m.maybe
	i := window - 1
	for i < len(text) {
		if jump := shift[uint16(text[i-1])<<8|uint16(text[i])]; jump != 0 {
			i += int(jump)
			continue
		}
		at := i - (window - 1)
		if at >= s.hold {
			return
		}
		key := keyOf(text[at:])
		if bit := hash(key); maybe[bit>>6]&(1<<(bit&63)) != 0 {
			for _, n := range s.m.byKey[key] {
				s.try(s.m.patterns[n], at)
			}
		}
		i++
	}
	if s.final {
		return
	}
	for at := max(0, i-(window-1)); at < len(text) && at < s.hold; at++ {
		for _, n := range s.m.byFirst[text[at]] {
			s.try(s.m.patterns[n], at)
		}
	}
}

// try looks whether p begins at the given place.
func (s *scan) try(p pattern, at int) {
	rest := s.text[at:]
	n := min(len(rest), len(p.text))
	if p.class == header && !strings.EqualFold(string(rest[:n]), p.text[:n]) ||
		p.class != header && string(rest[:n]) != p.text[:n] {
		return
	}
	switch {
	case p.class == header:
		s.tryHeader(p, at, n)
	case n < len(p.text):
		s.incomplete(at, at)
	case p.class == token:
		s.take(span{start: at, end: at + n, at: at, class: token}, minToken)
	default:
		s.spans = append(s.spans, span{start: at, end: at + n, at: at})
	}
}

// incomplete notes a match that begins at keep, the secret part of which would begin
// at hold, and that what follows must decide.
func (s *scan) incomplete(keep, hold int) {
	if s.final {
		return
	}
	s.keep, s.hold = min(s.keep, keep), min(s.hold, hold)
}

// take masks sp and all characters of its class that follow, if there are at least
// so many.
func (s *scan) take(sp span, least int) {
	n := sp.class.length(s.text[sp.end:], maxOpen)
	sp.end += n
	atEnd := sp.end == len(s.text)
	switch {
	case n < least && atEnd:
		s.incomplete(sp.at, sp.start)
	case n >= least:
		if atEnd {
			sp.left = maxOpen - n
		}
		s.spans = append(s.spans, sp)
	}
}

// length returns how many of the first bytes of b, at most limit, belong to a match
// of the class.
func (c class) length(b []byte, limit int) int {
	b = b[:min(limit, len(b))]
	belongs := isToken
	if c == header {
		belongs = isHeaderValue
	}
	for i, ch := range b {
		if !belongs(ch) {
			return i
		}
	}
	return len(b)
}

func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// isHeaderValue: a value goes on to the end of the line or of the string that it
// stands in.
func isHeaderValue(c byte) bool {
	return (c >= ' ' || c == '\t') && c != '"' && c != '\'' && c != '\\' && c != 0x7f
}

// tryHeader looks for the separator and the value behind the n bytes of a header's
// name that are there.
func (s *scan) tryHeader(p pattern, at, n int) {
	if n < len(p.text) {
		s.incomplete(at, len(s.text))
		return
	}
	body, ok := valueStart(s.text[:min(len(s.text), at+n+maxSeparator)], at+n)
	switch {
	case !ok && body == len(s.text):
		s.incomplete(at, len(s.text)) // nothing of the value is there
		return
	case !ok:
		return
	}
	for _, scheme := range []string{"bearer ", "basic ", "token "} {
		rest := s.text[body:]
		k := min(len(rest), len(scheme))
		if !strings.EqualFold(string(rest[:k]), scheme[:k]) {
			continue
		}
		if k < len(scheme) && !s.final {
			s.incomplete(at, body)
			return
		}
		if k == len(scheme) {
			body += k // the scheme is no secret
			break
		}
	}
	s.take(span{start: body, end: body, at: at, class: header}, minLength)
}

// valueStart returns where the value of a header begins whose name ends at i: behind
// a colon, with blanks and quotes of any kind around it, or directly behind "=". If
// there is no value it returns false, and where it stopped.
func valueStart(text []byte, i int) (int, bool) {
	name := i
	i = skip(text, i, `\"'`)
	i = skip(text, i, " \t")
	if i == len(text) || text[i] != ':' && (text[i] != '=' || i > name) {
		return i, false
	}
	i = skip(text, i+1, " \t")
	i = skip(text, i, `[\"'`)
	return i, i < len(text)
}

func skip(text []byte, i int, set string) int {
	for i < len(text) && strings.IndexByte(set, text[i]) >= 0 {
		i++
	}
	return i
}

// merge sorts the spans and joins those that overlap.
func (s *scan) merge() {
	if len(s.spans) < 2 {
		return
	}
	slices.SortFunc(s.spans, func(a, b span) int { return a.start - b.start })
	kept := s.spans[:1]
	for _, sp := range s.spans[1:] {
		if last := &kept[len(kept)-1]; sp.start < last.end {
			last.end = max(last.end, sp.end)
			continue
		}
		kept = append(kept, sp)
	}
	s.spans = kept
}
