package tui

import (
	"strings"
	"unicode"
)

// markdown lays out the Markdown that agents write: headings, lists, quotes, code, tables
// as they are, emphasis and links. Text that is none comes out as it is.
func markdown(s string, width int) []row {
	var rows []row
	var fence, lang string
	for _, line := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
				continue
			}
			rows = append(rows, codeRows(line, lang, width)...)
			continue
		}
		if f, ok := fenceOf(trimmed); ok {
			fence, lang = f, strings.TrimSpace(trimmed[len(f):])
			continue
		}
		rows = append(rows, markdownLine(line, trimmed, width)...)
	}
	return rows
}

// fenceOf is the fence that a line opens a block of code with.
func fenceOf(line string) (string, bool) {
	for _, c := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, c))
		if n >= 3 && !strings.Contains(line[n:], c) {
			return line[:n], true
		}
	}
	return "", false
}

func codeRows(line, lang string, width int) []row {
	r := text(line, code)
	if lang == "diff" || lang == "patch" {
		r = patchRow(line)
	}
	return prefixed(r.wrap(max(1, width-2), nil), span{"│ ", dim}, span{"│ ", dim})
}

func markdownLine(line, trimmed string, width int) []row {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch {
	case trimmed == "":
		return []row{nil}
	case isRule(trimmed):
		return []row{text(strings.Repeat("─", min(width, 40)), dim)}
	case strings.HasPrefix(trimmed, "#"):
		if words := strings.TrimLeft(trimmed, "#"); strings.HasPrefix(words, " ") && len(trimmed)-len(words) <= 6 {
			return text(strings.TrimSpace(words), heading).wrap(width, nil)
		}
	case strings.HasPrefix(trimmed, ">"):
		return prefixed(inline(strings.TrimSpace(trimmed[1:]), dim).wrap(max(1, width-2), nil), span{"│ ", dim}, span{"│ ", dim})
	case strings.HasPrefix(trimmed, "|"):
		return text(line, plain).wrap(width, nil)
	}
	if bullet, rest, ok := listItem(trimmed); ok {
		first := append(row{{indent + bullet, accent}}, inline(rest, plain)...)
		hang := strings.Repeat(" ", cellWidth(strings.ReplaceAll(indent, "\t", "    "))+cellWidth(bullet))
		return first.wrap(width, text(hang, plain))
	}
	return inline(line, plain).wrap(width, text(indent, plain))
}

func isRule(s string) bool {
	for _, c := range []string{"-", "*", "_"} {
		if len(s) >= 3 && strings.Trim(s, c+" ") == "" && strings.Count(s, c) >= 3 {
			return true
		}
	}
	return false
}

// listItem splits the bullet or number off an item of a list.
func listItem(s string) (bullet, rest string, ok bool) {
	for _, b := range []string{"- ", "* ", "+ "} {
		if r, found := strings.CutPrefix(s, b); found {
			for box, sign := range map[string]string{"[ ] ": "[ ] ", "[x] ": "[✓] ", "[X] ": "[✓] "} {
				if t, found := strings.CutPrefix(r, box); found {
					return sign, t, true
				}
			}
			return "• ", r, true
		}
	}
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > 0 && n < 10 && n+1 < len(s) && (s[n] == '.' || s[n] == ')') && s[n+1] == ' ' {
		return s[:n+2], s[n+2:], true
	}
	return "", "", false
}

// inline finds code, emphasis and links within a line.
func inline(s string, base face) row {
	var out row
	put := func(t string, f face) {
		if t != "" {
			out = append(out, span{t, f})
		}
	}
	start := 0
	for i := 0; i < len(s); {
		words, n, f := inlineAt(s, i, base)
		if n == 0 {
			i++
			continue
		}
		put(s[start:i], base)
		put(words, f)
		i += n
		start = i
	}
	put(s[start:], base)
	return out
}

// inlineAt looks for a marked part at i; n is its length with its marks, 0 if there is
// none.
func inlineAt(s string, i int, base face) (words string, n int, f face) {
	rest := s[i:]
	switch rest[0] {
	case '`':
		ticks := len(rest) - len(strings.TrimLeft(rest, "`"))
		if j := strings.Index(rest[ticks:], rest[:ticks]); j > 0 {
			return strings.TrimSpace(rest[ticks : ticks+j]), j + 2*ticks, code
		}
	case '*', '_':
		return emphasis(s, i)
	case '[':
		j := strings.Index(rest, "](")
		if j <= 1 || strings.ContainsAny(rest[1:j], "[]") {
			return "", 0, base
		}
		if k := strings.IndexByte(rest[j:], ')'); k > 2 {
			name, to := rest[1:j], rest[j+2:j+k]
			if name != to {
				name += " (" + to + ")"
			}
			return name, j + k + 1, accent
		}
	}
	return "", 0, base
}

func emphasis(s string, i int) (words string, n int, f face) {
	rest := s[i:]
	mark := rest[:1]
	f = italic
	if strings.HasPrefix(rest, mark+mark) {
		mark, f = mark+mark, bold
	}
	if mark[0] == '_' && i > 0 && isWord(rune(s[i-1])) { // a name_with_underscores
		return "", 0, plain
	}
	inner := rest[len(mark):]
	j := strings.Index(inner, mark)
	if j <= 0 || inner[0] == ' ' || inner[j-1] == ' ' {
		return "", 0, plain
	}
	if end := j + len(mark); mark[0] == '_' && end < len(inner) && isWord(rune(inner[end])) {
		return "", 0, plain
	}
	return inner[:j], j + 2*len(mark), f
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || r >= 0x80 }
