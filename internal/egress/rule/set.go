package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxDomains is how many rules a list that people write may have.
const MaxDomains = 100

// version is part of a fingerprint: the same rules that mean something else have another.
const version = "1"

// Set is a compiled policy. It does not change; the zero Set allows nothing.
type Set struct {
	exact  map[string][]Rule // by name
	wild   map[string][]Rule // by the name that the wildcard is below
	rules  []string          // canonical, sorted, each once
	public bool
}

// Compile makes a policy of rules. An error names each rule that is wrong by its position,
// the first of which is 1.
func Compile(rules []string) (Set, error) {
	s := Set{exact: map[string][]Rule{}, wild: map[string][]Rule{}}
	var bad mistakes
	for i, text := range rules {
		if text == All {
			s.public = true
			s.rules = append(s.rules, All)
			continue
		}
		r, err := Parse(text)
		if err != nil {
			bad.add(i+1, text, err)
			continue
		}
		s.add(r)
	}
	if err := bad.err(); err != nil {
		return Set{}, err
	}
	slices.Sort(s.rules)
	s.rules = slices.Compact(s.rules)
	return s, nil
}

func (s *Set) add(r Rule) {
	by := s.exact
	if r.wild {
		by = s.wild
	}
	by[r.host] = append(by[r.host], r)
	s.rules = append(s.rules, r.String())
}

// Normalize checks a list that people write, and returns it in canonical form, in its order
// and without repetitions.
func Normalize(rules []string) ([]string, error) {
	if len(rules) > MaxDomains {
		return nil, fmt.Errorf("You can allow up to %d domains", MaxDomains)
	}
	var bad mistakes
	out := make([]string, 0, len(rules))
	for i, text := range rules {
		r, err := Parse(text)
		switch {
		case err != nil:
			bad.add(i+1, text, err)
		case !slices.Contains(out, r.String()):
			out = append(out, r.String())
		}
	}
	return out, bad.err()
}

// mistakes are the positions of what is wrong, by reason, in the order of the first.
type mistakes struct {
	reasons []error
	at      [][]string
}

const (
	maxMistakes = 10 // that are told one by one
	maxQuoted   = 48
)

func (m *mistakes) add(position int, text string, why error) {
	i := slices.Index(m.reasons, why)
	if i < 0 {
		i = len(m.reasons)
		m.reasons, m.at = append(m.reasons, why), append(m.at, nil)
	}
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "…"
	}
	m.at[i] = append(m.at[i], strconv.Itoa(position)+" ("+strconv.QuoteToASCII(text)+")")
}

func (m *mistakes) err() error {
	if len(m.reasons) == 0 {
		return nil
	}
	var parts []string
	for i, why := range m.reasons {
		at, word, more := m.at[i], "rule ", ""
		if len(at) > 1 {
			word = "rules "
		}
		if len(at) > maxMistakes {
			at, more = at[:maxMistakes], fmt.Sprintf(" and %d more", len(at)-maxMistakes)
		}
		parts = append(parts, word+strings.Join(at, ", ")+more+": "+why.Error())
	}
	return errors.New(strings.Join(parts, "; "))
}

// Public reports whether every public address may be reached: the rule "*".
func (s Set) Public() bool { return s.public }

// Rules returns the rules, canonical and sorted.
func (s Set) Rules() []string { return slices.Clone(s.rules) }

// Fingerprint is the same for policies that allow the same.
func (s Set) Fingerprint() string {
	sum := sha256.Sum256([]byte(version + "\n" + strings.Join(s.rules, "\n")))
	return hex.EncodeToString(sum[:])
}

// Name reports whether any port of a name is allowed, and the rule that allows it. name is
// in lower case or not, without a dot at its end.
func (s Set) Name(name string) (rule string, ok bool) {
	return s.find(name, func(Rule) bool { return true })
}

// Match reports whether connections to a port of a name are allowed, and the rule that
// allows them. Where [Set.Requests] is true, only certain requests on them are.
func (s Set) Match(name string, port uint16) (rule string, ok bool) {
	if rule, ok = s.find(name, func(r Rule) bool { return r.path == "" && r.covers(port) }); ok {
		return rule, true
	}
	return s.find(name, func(r Rule) bool { return r.covers(port) })
}

// Requests reports whether connections to a place that Match allows are allowed for the sake
// of single requests: they must be plain HTTP, and Request is asked for each.
func (s Set) Requests(name string, port uint16) bool {
	_, whole := s.find(name, func(r Rule) bool { return r.path == "" && r.covers(port) })
	_, any := s.Match(name, port)
	return any && !whole
}

// Request reports whether one plain HTTP request is allowed, and the rule that allows it.
// target is its path, with the query if it has one.
func (s Set) Request(name string, port uint16, method, target string) (rule string, ok bool) {
	if rule, ok = s.find(name, func(r Rule) bool { return r.path == "" && r.covers(port) }); ok {
		return rule, true
	}
	return s.find(name, func(r Rule) bool { return r.path != "" && r.covers(port) && r.allows(method, target) })
}

// find returns the first rule for a name that fits, the most specific name first.
func (s Set) find(name string, fits func(Rule) bool) (rule string, ok bool) {
	name, valid := lookupName(name)
	if !valid {
		return "", false
	}
	if rule, ok = first(s.exact[name], fits); ok {
		return rule, true
	}
	for rest, more := name, true; more; _, rest, more = strings.Cut(rest, ".") {
		if rule, ok = first(s.wild[rest], fits); ok {
			return rule, true
		}
	}
	if s.public {
		return All, true
	}
	return "", false
}

func first(rules []Rule, fits func(Rule) bool) (string, bool) {
	for _, r := range rules {
		if fits(r) {
			return r.String(), true
		}
	}
	return "", false
}

// lookupName checks a name that a client gave. Other than in rules a label may hold "_".
func lookupName(name string) (string, bool) {
	if len(name) > 253 {
		return "", false
	}
	name = strings.ToLower(name)
	return name, isASCII(name) && checkName(strings.ReplaceAll(name, "_", "0")) == nil
}

// Suggest returns the rule that would allow connections to a place, or "" if none could.
func Suggest(name string, port uint16) string {
	host, err := Host(name)
	switch {
	case err != nil || port == 0:
		return ""
	case defaultPort(port):
		return host
	}
	return host + ":" + strconv.Itoa(int(port))
}
