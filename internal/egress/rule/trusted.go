package rule

import (
	_ "embed" // the trusted list
	"fmt"
	"strings"
)

//go:embed trusted.txt
var trusted string

// Default returns the trusted list: the rules of what a sandbox may reach at the level
// "trusted", and of an environment that includes the default domains.
func Default() []string {
	rules, _ := readGroups(trusted) // a test reads it without leaving out what is malformed
	return rules
}

// readGroups reads "name (itself, www, x)" lines: the rules name, www.name and x.name. An
// error names the lines that are malformed, which give no rule.
func readGroups(text string) ([]string, error) {
	var rules []string
	var bad []string
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		group, err := readGroup(line)
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: %v", i+1, err))
			continue
		}
		rules = append(rules, group...)
	}
	if len(bad) > 0 {
		return rules, fmt.Errorf("read the list: %s", strings.Join(bad, "; "))
	}
	return rules, nil
}

func readGroup(line string) ([]string, error) {
	name, list, found := strings.Cut(line, " (")
	list, closed := strings.CutSuffix(list, ")")
	if !found || !closed {
		return nil, fmt.Errorf("%q is not of the form name (itself, www)", line)
	}
	var out []string
	for label := range strings.SplitSeq(list, ",") {
		host := name
		if label = strings.TrimSpace(label); label != "itself" {
			host = label + "." + name
		}
		r, err := Parse(host)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", host, err)
		}
		out = append(out, r.String())
	}
	return out, nil
}
