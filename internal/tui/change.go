package tui

import (
	"strings"

	"github.com/Insights/insightscli/internal/linediff"
)

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// changeRows colours a change.
func changeRows(all []linediff.Line, width int) []row {
	var rows []row
	for _, c := range all {
		f := plain
		switch c.Op {
		case '+':
			f = added
		case '-':
			f = removed
		case '@':
			rows = append(rows, text("…", dim))
			continue
		}
		rows = append(rows, row{{string(c.Op) + " " + cleanKeep(c.Text), f}}.wrap(width, text("  ", plain))...)
	}
	return rows
}

// cleanKeep is clean for one line whose indentation counts.
func cleanKeep(s string) string { return strings.ReplaceAll(clean(s), "\n", " ") }

// patchRow colours a line of a unified diff.
func patchRow(line string) row {
	f := plain
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		f = bold
	case strings.HasPrefix(line, "+"):
		f = added
	case strings.HasPrefix(line, "-"):
		f = removed
	case strings.HasPrefix(line, "@@"):
		f = code
	}
	return text(line, f)
}
