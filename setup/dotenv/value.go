package dotenv

import (
	"bytes"
	"strings"
)

// expand gives the value of what is written between the quotes, or without any
// (quote 0). Single quotes keep everything; double quotes know escapes; all but single
// quotes know references to keys above.
func (f *File) expand(text []byte, quote byte) string {
	if quote != 0 {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	if quote == '\'' {
		return string(text)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		switch rest := text[i:]; rest[0] {
		case '\\':
			s, n := unescape(rest, quote)
			b.WriteString(s)
			i += n
		case '$':
			s, n := f.reference(string(rest))
			b.WriteString(s)
			i += n
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	return b.String()
}

// unescape reads the escape that text begins with. Those that neither godotenv nor a
// shell knows stay as they are.
func unescape(text []byte, quote byte) (value string, length int) {
	switch {
	case len(text) == 1:
		return `\`, 1
	case text[1] == '$':
		return "$", 2
	case quote == 0:
		return `\`, 1
	case text[1] == 'n':
		return "\n", 2
	case text[1] == 'r':
		return "\r", 2
	case bytes.IndexByte([]byte("\"\\`\n"), text[1]) >= 0:
		return string(text[1]), 2
	}
	return `\`, 1
}

// reference reads the $NAME or ${NAME} that text begins with. An unknown name in braces
// is empty, as for godotenv and a shell; an unknown one without is no reference: many a
// password has a $ in it.
func (f *File) reference(text string) (value string, length int) {
	inner, braces := strings.CutPrefix(text[1:], "{")
	n := 0
	for n < len(inner) && isWord(inner[n]) {
		n++
	}
	name := inner[:n]
	if name == "" || strings.ToUpper(name) != name || braces && !strings.HasPrefix(inner[n:], "}") {
		return "$", 1
	}
	value, known := f.Get(name)
	switch {
	case braces:
		return value, len("${}") + n
	case known:
		return value, len("$") + n
	}
	return "$", 1
}
