package secret

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// foldForm is where a text names a secret in place of its value. No argument,
// variable or prompt can hold a NUL of its own.
var foldForm = regexp.MustCompile("\x00([^\x00]*)\x00")

// Fold puts names in place of the values that stand in text, so that the text can be
// recorded: a command that the user's shell has put a secret into, say. Values that
// are too short to be masked are left as they are.
func Fold(text string, values map[string]String) string {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		// The longest first: one may hold another.
		return cmp.Or(cmp.Compare(len(values[b].Reveal()), len(values[a].Reveal())), strings.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(names))
	for _, name := range names {
		if v := values[name].Reveal(); len(strings.TrimSpace(v)) >= minLength {
			pairs = append(pairs, v, "\x00"+name+"\x00")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Unfold puts the values back.
func Unfold(text string, values map[string]String) string {
	return foldForm.ReplaceAllStringFunc(text, func(ref string) string { return values[strings.Trim(ref, "\x00")].Reveal() })
}

// ShowFolded is a folded text for people.
func ShowFolded(text string) string { return foldForm.ReplaceAllLiteralString(text, Hidden) }
