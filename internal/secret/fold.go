package secret

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A folded text names a secret between two of mark, in place of its value. No
// argument, variable or prompt can hold a NUL of its own.
const mark = "\x00"

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
			pairs = append(pairs, v, mark+name+mark)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Unfold puts the values back.
func Unfold(text string, values map[string]String) string {
	return replaceNames(text, func(name string) string { return values[name].Reveal() })
}

// ShowFolded is a folded text for people.
func ShowFolded(text string) string {
	return replaceNames(text, func(string) string { return Hidden })
}

// replaceNames puts what by says in the place of every name in a folded text. It does
// without package regexp, which would be part of every start of the agent server.
func replaceNames(text string, by func(name string) string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, mark)
		name, after, closed := strings.Cut(rest, mark)
		if !found || !closed {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(by(name))
		text = after
	}
}
