package gitguard

import (
	"strconv"
	"strings"
)

// commands returns the simple commands in a shell's text, each as its words, with the
// positional parameters in place. It knows as much of the language as aliases are
// written in: quotes, lists, pipelines, groups, functions, substitutions, redirections.
// Other variables stay as they are written.
func commands(text string, args []string) [][]string {
	left := maxWords
	return scan(text, args, &left)
}

// maxWords bounds the bytes of all words: an alias that calls itself with "$@ $@" has no
// end. What goes beyond is not looked at.
const maxWords = 1 << 20

func scan(text string, args []string, left *int) [][]string {
	s := &scanner{rest: text, args: args, left: left}
	for s.rest != "" && *left > 0 {
		s.step()
	}
	s.endCommand()
	return s.found
}

// scanner reads a shell's text. Nested texts (substitutions) get scanners of their own.
type scanner struct {
	rest  string
	args  []string
	left  *int // of maxWords
	found [][]string

	words  []string
	word   strings.Builder
	inWord bool // also an empty word, as in ''
	toFile bool // the next word is a redirection's
}

// step reads one character, or what begins with it.
func (s *scanner) step() {
	c := s.rest[0]
	switch c {
	case ' ', '\t':
		s.next(1)
		s.endWord()
	case '\n', ';', '&', '|', '(', ')':
		s.next(1)
		s.endCommand()
	case '#':
		s.comment()
	case '<', '>':
		s.redirect()
	case '\'':
		s.next(1)
		s.add(s.until("'"))
	case '"':
		s.next(1)
		s.quoted()
	case '`':
		s.next(1)
		s.nested(s.until("`"))
	case '$':
		s.dollar()
	case '\\':
		s.next(1)
		s.escaped()
	default:
		s.add(s.next(1))
	}
}

// next takes n bytes.
func (s *scanner) next(n int) string {
	n = min(n, len(s.rest))
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

// until takes what comes before the mark, and the mark.
func (s *scanner) until(mark string) string {
	before, after, _ := strings.Cut(s.rest, mark)
	s.rest = after
	return before
}

func (s *scanner) add(text string) {
	if *s.left -= len(text) + 1; *s.left < 0 {
		return
	}
	s.word.WriteString(text)
	s.inWord = true
}

func (s *scanner) endWord() {
	if s.inWord && !s.toFile {
		s.words = append(s.words, s.word.String())
	}
	s.toFile = s.toFile && !s.inWord
	s.word.Reset()
	s.inWord = false
}

func (s *scanner) endCommand() {
	s.endWord()
	s.toFile = false
	if len(s.words) == 0 {
		return
	}
	if words := called(s.words); len(words) > 0 && words[0] == "shift" && len(s.args) > 0 {
		s.args = s.args[1:]
	}
	s.found = append(s.found, s.words)
	s.words = nil
}

func (s *scanner) comment() {
	if s.inWord {
		s.add(s.next(1))
		return
	}
	if at := strings.IndexByte(s.rest, '\n'); at >= 0 {
		s.next(at)
		return
	}
	s.rest = ""
}

// redirect skips a redirection: its descriptor, and the file that follows.
func (s *scanner) redirect() {
	if strings.Trim(s.word.String(), "0123456789") == "" {
		s.word.Reset()
		s.inWord = false
	}
	s.endWord()
	s.rest = strings.TrimLeft(s.rest, "<>&|-")
	s.toFile = true
}

// escaped reads what follows a backslash outside quotes.
func (s *scanner) escaped() {
	if c := s.next(1); c != "\n" {
		s.add(c)
	}
}

// quoted reads what follows a double quote.
func (s *scanner) quoted() {
	if !strings.HasPrefix(s.rest, `$@"`) { // which may be no word at all
		s.add("")
	}
	for s.rest != "" {
		switch s.rest[0] {
		case '"':
			s.next(1)
			return
		case '`':
			s.next(1)
			s.nested(s.until("`"))
		case '$':
			s.dollar()
		case '\\':
			s.next(1)
			if s.rest != "" && !strings.ContainsAny(s.rest[:1], "$`\"\\\n") {
				s.add(`\`)
			}
			s.escaped()
		default:
			s.add(s.next(1))
		}
	}
}

// nested reads a command substitution. What it gives is not known.
func (s *scanner) nested(text string) {
	s.found = append(s.found, scan(text, s.args, s.left)...)
	s.add("$()")
}

// dollar reads an expansion.
func (s *scanner) dollar() {
	s.next(1)
	switch {
	case strings.HasPrefix(s.rest, "("):
		s.next(1)
		s.nested(s.group())
	case strings.HasPrefix(s.rest, "{"):
		s.next(1)
		if name := s.until("}"); !s.parameter(name) {
			s.add("${" + name + "}")
		}
	case s.rest != "" && s.parameter(s.rest[:1]):
		s.next(1)
	default:
		s.add("$")
	}
}

// group takes what comes before the parenthesis that closes the one before.
func (s *scanner) group() string {
	depth := 1
	for i, c := range s.rest {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text
		}
	}
	return s.next(len(s.rest))
}

// parameter adds the value of a positional parameter, if name is one.
func (s *scanner) parameter(name string) bool {
	if name == "@" || name == "*" {
		for i, arg := range s.args {
			if *s.left < 0 {
				break
			}
			if i > 0 {
				s.endWord()
			}
			s.add(arg)
		}
		return true
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 {
		return false
	}
	if n <= len(s.args) {
		s.add(s.args[n-1])
	}
	return true
}

// split divides an alias that is not for a shell into words, as git does: by white space,
// with quotes and backslashes.
func split(value string) []string {
	left := maxWords
	s := &scanner{rest: value, left: &left}
	var quote byte
	for s.rest != "" {
		c := s.rest[0]
		s.next(1)
		switch {
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			s.endWord()
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
			s.add("")
		case c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			s.add(s.next(1))
		default:
			s.add(string([]byte{c}))
		}
	}
	s.endWord()
	return s.words
}
