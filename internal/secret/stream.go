package secret

// Stream masks one stream of bytes, chunk by chunk. It is used by one goroutine.
type Stream struct {
	m *Masker
	// buf is the end of what was written that what follows may still decide about;
	// its first told bytes were given out, because only what may follow them is
	// secret (the value of a header).
	buf  []byte
	told int
	// covered is how many bytes of buf belong to a match that was told of.
	covered int
	open    [classes]int // see scan
	out     []byte
	spans   []span
}

// Stream returns a new Stream.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Held returns how many bytes the stream remembers: the last bytes of what was
// written, if they are the beginning of something secret or if it is not over yet.
// At 0 a new Stream would go on in the same way.
func (s *Stream) Held() int {
	n := len(s.buf)
	for _, left := range s.open {
		if left > 0 {
			return max(n, 1)
		}
	}
	return n
}

// Write returns what can be told after chunk: everything that was written and not
// told yet, but for the end that may be the beginning of something secret. The
// result is valid until the next call and may be a part of chunk.
func (s *Stream) Write(chunk []byte) []byte { return s.next(chunk, false) }

// Flush returns what is held back: the text ends here. The stream can be used for
// another text then.
func (s *Stream) Flush() []byte {
	out := s.next(nil, true)
	s.buf, s.told, s.covered, s.open = s.buf[:0], 0, 0, [classes]int{}
	return out
}

func (s *Stream) next(chunk []byte, final bool) []byte {
	text := chunk
	if len(s.buf) > 0 {
		s.buf = append(s.buf, chunk...)
		text = s.buf
	}
	s.goOn(text, len(text)-len(chunk))
	sc := scan{m: s.m, text: text, final: final, spans: s.spans[:0]}
	sc.run()
	for c, left := range sc.open {
		s.open[c] = max(s.open[c], left)
	}
	out := s.tell(&sc)
	s.remember(&sc)
	s.spans = sc.spans[:0]
	return out
}

// goOn covers what the chunk, which begins at the given place, adds to matches that
// reached its end.
func (s *Stream) goOn(text []byte, at int) {
	for c, left := range s.open {
		if left == 0 {
			continue
		}
		n := class(c).length(text[at:], left)
		s.covered = max(s.covered, at+n)
		s.open[c] = 0
		if at+n == len(text) {
			s.open[c] = left - n
		}
	}
}

// tell gives out everything before sc.hold that was not, with the spans masked.
func (s *Stream) tell(sc *scan) []byte {
	text, end := sc.text, sc.hold
	from := min(max(s.told, s.covered), end)
	if len(sc.spans) == 0 {
		return text[from:end]
	}
	s.out = s.out[:0]
	for _, sp := range sc.spans {
		if sp.start >= end {
			break
		}
		if sp.start >= s.told && sp.start >= s.covered {
			s.out = append(s.out, text[from:sp.start]...)
			s.out = append(s.out, Hidden...)
		}
		s.covered = max(s.covered, sp.end)
		from = min(max(from, s.covered), end)
	}
	s.out = append(s.out, text[from:end]...)
	return s.out
}

// remember keeps the end of the text that is not decided.
func (s *Stream) remember(sc *scan) {
	start := min(sc.keep, sc.hold)
	s.told = sc.hold - start
	s.covered = max(0, s.covered-start)
	if len(s.buf) > 0 {
		// What was told may be a part of buf and must stay as it is.
		s.buf = append(make([]byte, 0, len(sc.text)-start), sc.text[start:]...)
		return
	}
	s.buf = append(s.buf, sc.text[start:]...)
}
