package dotenv

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/Insights/insightscli/internal/secret"
)

// around is how many unchanged lines a hunk of a diff shows on either side.
const around = 3

// IsSecret reports whether the name of a key says that its value is a secret.
func IsSecret(key string) bool {
	key = strings.ToUpper(key)
	for _, word := range []string{"KEY", "SECRET", "TOKEN", "PASS", "PEM", "CREDENTIAL", "DSN"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// Diff shows for people what was changed since Parse, as a unified diff of a file of that
// name, "" if nothing was. The value of every key for which hide says true (nil:
// [IsSecret]) is masked, in unchanged lines and comments, too; so are a line that cannot be
// read and a value that is a key in PEM or a URL with a password.
func (f *File) Diff(name string, hide func(key string) bool) string {
	if !f.Changed() {
		return ""
	}
	if hide == nil {
		hide = IsSecret
	}
	var all []diffLine
	for i, l := range f.lines {
		switch {
		case i >= len(f.orig.lines):
			all = add(all, '+', f.shown(l, hide))
		case f.text(l) == f.orig.text(f.orig.lines[i]):
			all = add(all, ' ', f.shown(l, hide))
		default:
			all = add(all, '-', f.orig.shown(f.orig.lines[i], hide))
			all = add(all, '+', f.shown(l, hide))
		}
	}
	return "--- " + name + "\n+++ " + name + "\n" + hunks(all)
}

// diffLine is a line of a diff: ' ' in both texts, '-' in the old, '+' in the new one.
type diffLine struct {
	sign byte
	text string
}

// add appends what may be several lines.
func add(all []diffLine, sign byte, text string) []diffLine {
	for part := range strings.SplitSeq(text, "\n") {
		all = append(all, diffLine{sign, part})
	}
	return all
}

// hunks writes the changed lines with those around them.
func hunks(all []diffLine) string {
	var b strings.Builder
	before, after := 1, 1 // numbers of the next line
	for i := 0; i < len(all); {
		end := hunkEnd(all, i)
		if end == i {
			before, after, i = before+1, after+1, i+1
			continue
		}
		var body strings.Builder
		olds, news := 0, 0
		for _, l := range all[i:end] {
			fmt.Fprintf(&body, "%c%s\n", l.sign, l.text)
			if l.sign != '+' {
				olds++
			}
			if l.sign != '-' {
				news++
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n%s", span(before, olds), span(after, news), body.String())
		before, after, i = before+olds, after+news, end
	}
	return b.String()
}

// span is lines n and on as a hunk's head has them: of none, it names the line before.
func span(n, count int) string {
	if count == 0 {
		n--
	}
	return fmt.Sprintf("%d,%d", n, count)
}

// hunkEnd returns where the hunk ends that begins with line i; i if none does.
func hunkEnd(all []diffLine, i int) int {
	end := i
	for j := i; j < len(all) && j <= end+2*around; j++ {
		if all[j].sign == ' ' {
			continue
		}
		if end == i && j > i+around {
			return i
		}
		end = j + 1
	}
	if end == i {
		return i
	}
	return min(end+around, len(all))
}

// shown is a line as people are shown it.
func (f *File) shown(l line, hide func(string) bool) string {
	text := f.text(l)
	switch {
	case l.bad:
		text = "[a line that cannot be read]"
	case l.key != "" && (hide(l.key) || tells(l.value)):
		text = string(f.src[l.start:l.keyEnd]) + "=" + secret.Hidden
	case l.key == "" && tells(text):
		text = "# " + secret.Hidden
	case l.key == "":
		text = shownComment(text, hide)
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

// shownComment masks an assignment that was commented out.
func shownComment(text string, hide func(string) bool) string {
	inner := strings.TrimLeft(text, "# \t")
	if l := scan([]byte(inner)); len(l.lines) == 1 && l.lines[0].key != "" && hide(l.lines[0].key) {
		return "# " + l.lines[0].key + "=" + secret.Hidden
	}
	return text
}

// tells reports whether a text is a secret by what it looks like.
func tells(text string) bool {
	_, address, isURL := strings.Cut(text, "://")
	host, _, _ := strings.Cut(address, "/")
	return isURL && strings.Contains(host, "@") || strings.Contains(text, "PRIVATE KEY-----")
}
