package acp

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                             nil,
		"  \t\n":                       nil,
		"opencode acp":                 {"opencode", "acp"},
		" a  b ":                       {"a", "b"},
		`a 'b c' "d e"`:                {"a", "b c", "d e"},
		`a'b'"c"d`:                     {"abcd"},
		`'' ""`:                        {"", ""},
		`a\ b \"c\' \\`:                {"a b", `"c'`, `\`},
		`"a \" b \n \$x" '\'`:          {`a " b \n $x`, `\`},
		`-c 'model_providers={x="y"}'`: {"-c", `model_providers={x="y"}`},
		"é 'ü ß'":                      {"é", "ü ß"},
	} {
		if got, err := words(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{`'a`, `"a`, `a\`, `"a\`} {
		if got, err := words(line); err == nil {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add(`a 'b c' "d\"e" f\ g`)
	f.Fuzz(func(t *testing.T, line string) {
		if all, err := words(line); err != nil && all != nil {
			t.Errorf("%q with %v", all, err)
		}
	})
}
