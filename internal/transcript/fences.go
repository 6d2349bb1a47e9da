package transcript

import "strings"

// segment is a part of a text in Markdown: a fenced block of code, or anything else.
type segment struct {
	code bool
	lang string
	text string
}

// splitFences finds the fenced blocks of code of a text. A fence that is never closed
// holds all that follows.
func splitFences(s string) []segment {
	var all []segment
	var cur segment
	var b strings.Builder
	end := func() {
		if cur.text = b.String(); cur.text != "" || cur.code {
			all = append(all, cur)
		}
		b.Reset()
	}
	fence := ""
	for l := range strings.Lines(s) {
		open, lang := fenceOf(l)
		switch {
		case fence == "" && open != "":
			end()
			fence, cur = open, segment{code: true, lang: lang}
		case fence != "" && strings.HasPrefix(open, fence) && lang == "":
			end()
			fence, cur = "", segment{}
		default:
			b.WriteString(l)
		}
	}
	end()
	return all
}

// fenceOf returns the marks of a line that is a fence, and the word behind them.
func fenceOf(l string) (marks, lang string) {
	rest := strings.TrimLeft(l, " ")
	if len(l)-len(rest) > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return "", ""
	}
	n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	info := strings.TrimSpace(rest[n:])
	if n < 3 || rest[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return rest[:n], info
}

// fenceFor is a fence that nothing in a text ends.
func fenceFor(text string) string {
	longest, n := 0, 0
	for i := range len(text) {
		if text[i] == '`' {
			n++
			longest = max(longest, n)
		} else {
			n = 0
		}
	}
	return strings.Repeat("`", max(3, longest+1))
}

// langOf is the language of a block of code if it looks like one.
func langOf(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if len(word) > 20 || strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789+-#_") != "" {
		return ""
	}
	return word
}
