package cli

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// chosenEvents are the flags that say which events are wanted, and what they mean.
type chosenEvents struct {
	kinds        []string
	tools        []string
	severity     string
	since, until string
	grep         string

	filter render.Filter
	match  *regexp.Regexp // nil: any line
}

func (c *chosenEvents) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&c.kinds, "kind", nil, "only events of this `KIND`: "+strings.Join(kindNames(), ", "))
	f.StringSliceVar(&c.tools, "tool", nil, "only what an agent does with this `TOOL`: its kind (read, edit, execute, search, fetch), or a part of its title")
	f.StringVar(&c.severity, "severity", "", "only what is as bad as this `LEVEL`, or worse: info, warn, error")
	f.StringVar(&c.since, "since", "", "begin at this `TIME`: a duration before now (10m), RFC 3339, or a date and time of here")
	f.StringVar(&c.until, "until", "", "end at this `TIME`")
	f.StringVar(&c.grep, "grep", "", "only lines that match this `REGEXP` (RE2)")
	for name, words := range map[string][]string{
		"kind": kindNames(), "severity": {"info", "warn", "error"},
		"tool": {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

func kindNames() []string {
	var names []string
	for _, k := range task.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// any reports whether some events are not wanted.
func (c *chosenEvents) any() bool {
	return len(c.kinds) > 0 || len(c.tools) > 0 || c.severity != "" || c.since != "" || c.until != "" || c.grep != ""
}

// parse finds out what the flags mean.
func (c *chosenEvents) parse(now time.Time) error {
	for _, k := range c.kinds {
		if !slices.Contains(kindNames(), k) {
			return usageError("unknown kind %q; there are %s", k, strings.Join(kindNames(), ", "))
		}
		c.filter.Kinds = append(c.filter.Kinds, task.Kind(k))
	}
	for _, t := range c.tools {
		if t = strings.TrimSpace(t); t == "" {
			return usageError("--tool is empty")
		}
		c.filter.Tools = append(c.filter.Tools, t)
	}
	var err error
	if c.severity != "" {
		if c.filter.Severity, err = render.ParseSeverity(c.severity); err != nil {
			return usageError("%w", err)
		}
	}
	if c.filter.From, err = timeOf("--since", c.since, now); err != nil {
		return err
	}
	if c.filter.To, err = timeOf("--until", c.until, now); err != nil {
		return err
	}
	if !c.filter.To.IsZero() && c.filter.To.Before(c.filter.From) {
		return usageError("--until %s is before --since %s", c.until, c.since)
	}
	if c.grep != "" {
		if c.match, err = regexp.Compile(c.grep); err != nil {
			return usageError("--grep takes a regular expression of RE2: %w", err)
		}
	}
	return nil
}

// timeOf is the time that a flag means; the zero time if it is not given.
func timeOf(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError("%s takes a duration (10m) or a time (2026-01-02T15:04:05Z, 2026-01-02), got %q", flag, text)
}
