package tui

import "strings"

// changed is a line of a change: ' ' stays, '+' came, '-' went, '@' stands for lines that
// are left out.
type changed struct {
	op   byte
	text string
}

const (
	// nearby is how many lines around a change are shown.
	nearby = 3
	// maxTable bounds the table from which the common lines of two texts are found. Beyond
	// it everything between the first and the last change counts as changed.
	maxTable = 1 << 20
)

// diffLines compares two texts line by line.
func diffLines(before, after string) []changed {
	a, b := splitLines(before), splitLines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []changed
	for _, l := range a[:head] {
		out = append(out, changed{' ', l})
	}
	out = append(out, between(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, l := range a[len(a)-tail:] {
		out = append(out, changed{' ', l})
	}
	return around(out)
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// between compares the part that differs by the longest common subsequence.
func between(a, b []string) []changed {
	var out []changed
	if len(a)*len(b) > maxTable {
		for _, l := range a {
			out = append(out, changed{'-', l})
		}
		for _, l := range b {
			out = append(out, changed{'+', l})
		}
		return out
	}
	w := len(b) + 1
	common := make([]uint16, (len(a)+1)*w) // of the rest of a and the rest of b
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, changed{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[(i+1)*w+j] >= common[i*w+j+1]):
			out = append(out, changed{'-', a[i]})
			i++
		default:
			out = append(out, changed{'+', b[j]})
			j++
		}
	}
	return out
}

// around leaves out what is far from any change.
func around(all []changed) []changed {
	near := make([]bool, len(all))
	for i, c := range all {
		if c.op == ' ' {
			continue
		}
		for j := max(0, i-nearby); j < min(len(all), i+nearby+1); j++ {
			near[j] = true
		}
	}
	var out []changed
	for i, c := range all {
		switch {
		case near[i]:
			out = append(out, c)
		case i > 0 && near[i-1], i == 0:
			out = append(out, changed{op: '@'})
		}
	}
	return out
}

// changeRows colours a change.
func changeRows(all []changed, width int) []row {
	var rows []row
	for _, c := range all {
		f := plain
		switch c.op {
		case '+':
			f = added
		case '-':
			f = removed
		case '@':
			rows = append(rows, text("…", dim))
			continue
		}
		rows = append(rows, row{{string(c.op) + " " + cleanKeep(c.text), f}}.wrap(width, text("  ", plain))...)
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
