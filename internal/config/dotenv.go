package config

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joho/godotenv"

	"github.com/Insights/insightscli/setup/dotenv"
)

// readDotenv reads a .env file and says what is odd about it. Variables that are no
// setting of ours are left out. Other programs read the file with godotenv, or by its
// rules; where they and package dotenv differ, package dotenv is right, and a notice says
// so. Godotenv's own error is not passed on: it quotes the rest of the file, secrets
// included.
func readDotenv(path string) (entries, []string, error) {
	b, err := readFile(path)
	if err != nil || b == nil {
		return nil, nil, err
	}
	f := dotenv.Parse(b)
	if name := misspelt(f.Keys()); name != "" {
		return nil, nil, &lineError{line: f.Line(name), err: fmt.Errorf("unknown variable %q", name)}
	}
	got := entries{}
	for _, s := range Settings() {
		if text, given := f.Get(s.Name); (text != "" || given && s.Empty) && !s.EnvOnly {
			got[s.Name] = entry{text: text, line: f.Line(s.Name)}
		}
	}
	return got, dotenvNotices(b, f), nil
}

// dotenvNotices tells of lines that nobody can read, or else of those that other programs
// cannot, or else of settings that they read differently.
func dotenvNotices(src []byte, f *dotenv.File) []string {
	if bad := f.Problems(); len(bad) > 0 {
		return []string{onLines(bad, "cannot be read as KEY=VALUE and is left out")}
	}
	theirs, err := godotenv.UnmarshalBytes(src)
	if err != nil {
		if line := badLine(src, err); line > 0 {
			return []string{onLines([]int{line}, "cannot be read by many other programs")}
		}
		return []string{": many other programs cannot read this file"}
	}
	var differ []int
	for _, s := range Settings() {
		if ours, ok := f.Get(s.Name); ok && ours != theirs[s.Name] {
			differ = append(differ, f.Line(s.Name))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return []string{onLines(differ, "is read differently by many other programs; put its value in single quotes")}
}

// onLines says what holds for each of the lines, behind the name of their file.
func onLines(lines []int, what string) string {
	slices.Sort(lines)
	text := fmt.Sprintf(":%d: this line %s", lines[0], what)
	if len(lines) == 1 {
		return text
	}
	var others []string
	for _, n := range lines[1:min(len(lines), maxLines)] {
		others = append(others, strconv.Itoa(n))
	}
	if len(lines) > maxLines {
		others = append(others, "…")
	}
	return text + " (so with " + strings.Join(others, ", ") + ")"
}

// maxLines bounds how many lines a notice names.
const maxLines = 6

// ownPrefix begins the names of those variables that nobody else uses.
const ownPrefix = "INSIGHTSCLI_"

// misspelt returns a name that is ours by its beginning and no setting. Other names are
// somebody else's.
func misspelt(names []string) string {
	for _, name := range slices.Sorted(slices.Values(names)) {
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
