package platform

import (
	_ "embed" // for the scope objects
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// objects are the things that scopes give access to, one a line, each to read and to
// write.
//
//go:embed scopes.txt
var objects string

// The presets of scopes.
const (
	ScopesReadOnly = "read_only" // everything, to read
	ScopesFull     = "full"      // everything, to read and to write
)

const (
	read  = ":read"
	write = ":write"
)

// InternalScopes are added to every token: to report on its own task, to reach the
// model gateway, and as the proof that it was made on the host's side.
func InternalScopes() []string {
	return []string{"task:write", "llm_gateway:read", "internal_run:read"}
}

// Scopes resolves what a user asks for: a preset, or a list of scopes separated by
// commas or blanks. The internal scopes are at the end of every result.
func Scopes(asked string) ([]string, error) {
	var chosen []string
	switch asked {
	case ScopesReadOnly:
		chosen = every(read)
	case ScopesFull:
		chosen = append(every(read), every(write)...)
	default:
		chosen = strings.FieldsFunc(asked, func(r rune) bool { return r == ',' || r == ' ' })
		if err := CheckScopes(chosen); err != nil {
			return nil, err
		}
	}
	internal := InternalScopes()
	chosen = slices.DeleteFunc(chosen, func(s string) bool { return slices.Contains(internal, s) })
	return unique(append(chosen, internal...)), nil
}

// CheckScopes returns a usage error for the first scope that does not exist.
func CheckScopes(scopes []string) error {
	known := append(append(every(read), every(write)...), InternalScopes()...)
	exists := make(map[string]bool, len(known))
	for _, s := range known {
		exists[s] = true
	}
	for _, s := range scopes {
		if exists[s] {
			continue
		}
		hint := "use read_only, full, or a list such as query:read,insight:write"
		if n := nearest(s, known); n != "" {
			hint = "did you mean " + n + "?"
		}
		return errs.New("platform.Scopes", errs.Usage, hint, "there is no scope %q", s)
	}
	if len(scopes) == 0 {
		return errs.New("platform.Scopes", errs.Usage, "use read_only, full, or a list such as query:read,insight:write",
			"the list of scopes is empty")
	}
	return nil
}

// HasWrite reports whether scopes let their holder change something beyond its own
// task.
func HasWrite(scopes []string) bool {
	internal := InternalScopes()
	return slices.ContainsFunc(scopes, func(s string) bool {
		return strings.HasSuffix(s, write) && !slices.Contains(internal, s)
	})
}

// every returns the scope of that access to each object.
func every(access string) []string {
	all := strings.Fields(objects)
	for i := range all {
		all[i] += access
	}
	return all
}

// unique removes repeated elements and keeps the order.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// nearest returns the known scope that is most like s, or "" if none is like it. An
// object without an access, or with another, means its reading.
func nearest(s string, known []string) string {
	object, _, _ := strings.Cut(s, ":")
	if slices.Contains(known, object+read) {
		return object + read
	}
	best, least := "", max(2, len(s)/3)+1
	for _, k := range known {
		if d := distance(s, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of single-character edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
