package codex

import "strings"

// speech is what the agent has said in a turn, which can be told only by pieces that are
// put together: messages are kept apart, and the beginning of one that Codex lost with
// its connection, and that the model says again, is not told twice.
type speech struct {
	item  string          // the message that is being said
	text  strings.Builder // of it, as far as told
	held  string          // of it, not told: so far it repeats lost
	lost  string          // what was told of a message that was broken off
	whole bool            // a message is over, and nothing came between
}

// begin: a message begins.
func (s *speech) begin(item string) {
	if said := s.text.String(); s.item != "" && said != "" {
		s.lost = said // it has not ended
	}
	s.item, s.held = item, ""
	s.text.Reset()
}

// add returns what is to be told after a piece of the message.
func (s *speech) add(item, piece string) string {
	if item != s.item {
		s.begin(item)
	}
	if s.lost != "" {
		s.held += piece
		switch {
		case strings.HasPrefix(s.lost, s.held): // still the same
			return ""
		case strings.HasPrefix(s.held, s.lost): // and on from there
			piece = s.held[len(s.lost):]
			s.text.WriteString(s.lost)
		default: // other words
			piece = s.held
			s.whole = true
		}
		s.lost, s.held = "", ""
	}
	if piece == "" {
		return ""
	}
	apart := ""
	if s.whole {
		apart, s.whole = "\n\n", false
	}
	s.text.WriteString(piece)
	return apart + piece
}

// end returns what is still to be told of a message of which the whole is known.
func (s *speech) end(item, whole string) string {
	rest := whole
	if item == s.item {
		rest = strings.TrimPrefix(whole, s.text.String()+s.held)
		if rest == whole && s.text.Len()+len(s.held) > 0 {
			rest = "" // it is not what its pieces were
		}
	}
	rest = s.add(item, rest)
	s.item, s.held, s.lost = "", "", ""
	s.text.Reset()
	s.whole = s.whole || whole != ""
	return rest
}

// interrupt: something else came between.
func (s *speech) interrupt() { s.whole = false }
