package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joho/godotenv"
)

// readDotenv reads a .env file. Variables that are no setting of ours are left
// out. The parser's own error is not passed on: it quotes the rest of the file,
// secrets included.
func readDotenv(path string) (entries, error) {
	b, err := readFile(path)
	if err != nil || b == nil {
		return nil, err
	}
	vars, err := godotenv.UnmarshalBytes(b)
	if err != nil {
		return nil, &lineError{line: badLine(b, err), err: errors.New("this line cannot be read as KEY=VALUE")}
	}
	if name := misspelt(vars); name != "" {
		return nil, &lineError{line: lineOf(b, name), err: fmt.Errorf("unknown variable %q", name)}
	}
	got := entries{}
	for _, s := range Settings() {
		if text := vars[s.Name]; text != "" && !s.EnvOnly {
			got[s.Name] = entry{text: text, line: lineOf(b, s.Name)}
		}
	}
	return got, nil
}

// ownPrefix begins the names of those variables that nobody else uses.
const ownPrefix = "INSIGHTSCLI_"

// misspelt returns a name in vars that is ours by its beginning and no setting.
// Other names are somebody else's.
func misspelt(vars map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		known := slices.ContainsFunc(Settings(), func(s Setting) bool { return s.Name == name })
		if strings.HasPrefix(name, ownPrefix) && !strings.HasPrefix(name, ownPrefix+"TEST_") && !known {
			return name
		}
	}
	return ""
}

// entry is the text of a setting and the line it stands on, 0 if unknown.
type entry struct {
	text string
	line int
}

// entries maps the names of settings to what one source says of them.
type entries map[string]entry

// lineError is an error at a line of a file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string {
	if e.line == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.line, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

// badLine finds the line at which godotenv gave up: its messages end with the
// text that was left, quoted or as it is.
func badLine(src []byte, err error) int {
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	msg := err.Error()
	rest := ""
	if _, quoted, ok := strings.Cut(msg, " near "); ok {
		rest, _ = strconv.Unquote(quoted)
	} else if _, value, ok := strings.Cut(msg, "unterminated quoted value "); ok {
		rest = value
	}
	at := bytes.LastIndex(src, []byte(rest))
	if rest == "" || at < 0 {
		return 0
	}
	return 1 + bytes.Count(src[:at], []byte{'\n'})
}

// lineOf finds the line of the last assignment to name, KEY=VALUE or KEY: VALUE; 0 if
// it is not plain.
func lineOf(src []byte, name string) int {
	found := 0
	for i, line := range strings.Split(string(src), "\n") {
		end := max(strings.IndexAny(line, "=:"), 0)
		words := strings.Fields(line[:end])
		if len(words) == 2 && words[0] == "export" {
			words = words[1:]
		}
		if len(words) == 1 && words[0] == name {
			found = i + 1
		}
	}
	return found
}
