package linediff

import (
	"fmt"
	"strings"
	"testing"
)

func shown(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%c%s,", l.Op, l.Text)
	}
	return b.String()
}

func TestLines(t *testing.T) {
	far := strings.Repeat("same\n", 10)
	for _, tt := range []struct{ before, after, want string }{
		{"", "", ""},
		{"", "a\nb", "+a,+b,"},
		{"a\n", "", "-a,"},
		{"a\nb\nc\n", "a\nB\nc\n", " a,-b,+B, c,"},
		{far + "x\n" + far, far + "y\n" + far, "@, same, same, same,-x,+y, same, same, same,@,"},
		{"a\nb\nc", "b\nc\nd", "-a, b, c,+d,"},
	} {
		if got := shown(Lines(tt.before, tt.after)); got != tt.want {
			t.Errorf("%q to %q: %s, want %s", tt.before, tt.after, got, tt.want)
		}
	}
}

// Texts that are too long to be compared count as replaced.
func TestLongTexts(t *testing.T) {
	var a, b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	if got := Lines(a.String(), b.String()); len(got) != 10_000 || got[0].Op != '-' || got[9999].Op != '+' {
		t.Errorf("%d lines", len(got))
	}
}
