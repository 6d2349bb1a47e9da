package rule

import (
	"slices"
	"strings"
)

// Modal returns the policy as Modal's outbound_domain_allowlist says it: names without
// ports, sorted, and none that a wildcard of the list covers. Rules that are for one port
// or for certain requests cannot be said there; they are left out, and ModalLeft names them.
func (s Set) Modal() []string {
	if s.public {
		return []string{All}
	}
	var out []string
	for _, text := range s.rules {
		r, err := Parse(text)
		if err != nil || r.port != 0 || r.path != "" || s.collapses(r) {
			continue
		}
		out = append(out, r.String())
		if r.wild {
			out = append(out, r.host)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ModalLeft returns the rules that Modal says nothing of, and so does not allow.
func (s Set) ModalLeft() []string {
	var out []string
	for _, text := range s.rules {
		if r, err := Parse(text); err == nil && (r.port != 0 || r.path != "") && !s.public {
			out = append(out, text)
		}
	}
	return out
}

// collapses reports whether another rule, a wildcard for the default ports, covers all of r.
func (s Set) collapses(r Rule) bool {
	for rest, more := r.host, true; more; _, rest, more = strings.Cut(rest, ".") {
		if rest == r.host && r.wild {
			continue
		}
		if slices.ContainsFunc(s.wild[rest], func(w Rule) bool { return w.port == 0 && w.path == "" }) {
			return true
		}
	}
	return false
}
