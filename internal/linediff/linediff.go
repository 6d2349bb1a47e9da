// Package linediff compares two texts line by line, for people who read the change. What
// is far from any change is left out.
package linediff

import "strings"

// Line is a line of a change.
type Line struct {
	Op   byte // ' ' stays, '+' came, '-' went, '@' stands for lines that are left out
	Text string
}

const (
	// nearby is how many lines around a change are kept.
	nearby = 3
	// maxTable bounds the table from which the common lines of two texts are found. Beyond
	// it everything between the first and the last change counts as changed.
	maxTable = 1 << 20
)

// Lines compares two texts.
func Lines(before, after string) []Line {
	a, b := split(before), split(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := stay(nil, a[:head])
	out = append(out, between(a[head:len(a)-tail], b[head:len(b)-tail])...)
	return around(stay(out, a[len(a)-tail:]))
}

func stay(out []Line, lines []string) []Line {
	for _, l := range lines {
		out = append(out, Line{' ', l})
	}
	return out
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// between compares the part that differs by the longest common subsequence.
func between(a, b []string) []Line {
	if len(a)*len(b) > maxTable {
		return replaced(a, b)
	}
	w := len(b) + 1
	common := table(a, b)
	var out []Line
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, Line{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[(i+1)*w+j] >= common[i*w+j+1]):
			out = append(out, Line{'-', a[i]})
			i++
		default:
			out = append(out, Line{'+', b[j]})
			j++
		}
	}
	return out
}

func replaced(a, b []string) []Line {
	out := make([]Line, 0, len(a)+len(b))
	for _, l := range a {
		out = append(out, Line{'-', l})
	}
	for _, l := range b {
		out = append(out, Line{'+', l})
	}
	return out
}

// table holds how many lines the rests of a and b have in common.
func table(a, b []string) []uint16 {
	w := len(b) + 1
	common := make([]uint16, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	return common
}

// around leaves out what is far from any change.
func around(all []Line) []Line {
	near := make([]bool, len(all))
	for i, c := range all {
		if c.Op == ' ' {
			continue
		}
		for j := max(0, i-nearby); j < min(len(all), i+nearby+1); j++ {
			near[j] = true
		}
	}
	var out []Line
	for i, c := range all {
		switch {
		case near[i]:
			out = append(out, c)
		case i == 0, near[i-1]:
			out = append(out, Line{Op: '@'})
		}
	}
	return out
}
