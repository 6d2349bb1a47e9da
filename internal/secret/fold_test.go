package secret

import "testing"

func TestFold(t *testing.T) {
	values := map[string]String{
		"A": New("canary"), "LONG": New("canary-and-more"), "SHORT": New("abc"), "EMPTY": New(""), "NULLS": New("a$1b\\2c{}"),
	}
	for _, tt := range []struct{ text, shown string }{
		{"", ""},
		{"plain", "plain"},
		{"x canary y", "x [hidden] y"},
		{"canary-and-more canary", "[hidden] [hidden]"},
		{"canarycanary", "[hidden][hidden]"},
		{"abc stays", "abc stays"},
		{"a$1b\\2c{}", "[hidden]"},
	} {
		folded := Fold(tt.text, values)
		if got := ShowFolded(folded); got != tt.shown {
			t.Errorf("%q is shown as %q, want %q", tt.text, got, tt.shown)
		}
		if got := Unfold(folded, values); got != tt.text {
			t.Errorf("%q came back as %q", tt.text, got)
		}
	}
	if got := Fold("x", nil); got != "x" {
		t.Error(got)
	}
}
