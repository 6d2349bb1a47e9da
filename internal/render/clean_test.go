package render

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "hello\tworld", "hello\tworld"},
		{"lines", "a\nb\r\nc", "a b c"},
		{"reset of the terminal", "a\x1bcb", "ab"},
		{"alternate screen", "a\x1b[?1049hb", "ab"},
		{"window title", "a\x1b]0;evil\x07b", "ab"},
		{"hyperlink", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"clipboard", "a\x1b]52;c;ZXZpbA==\x07b", "ab"},
		{"device control string", "a\x1bP1$r0m\x1b\\b", "ab"},
		{"cursor", "a\x1b[2A\x1b[10Gb", "ab"},
		{"character set", "a\x1b(0b\x1b(B", "ab"},
		{"eight-bit control sequence", "a\u009b31mb", "ab"},
		{"eight-bit string", "a\u009d0;evil\u009cb", "ab"},
		{"bell, NUL, backspace, delete", "a\a\x00\b\x7fb", "ab"},
		{"turned text", "rm \u202eabc\u202c \u2066x\u2069 שלום", "rm abc x שלום"},
		{"not UTF-8", "a\xffb\xc3", "a�b�"},
		{"other scripts", "日本語 é 👩‍👩‍👧", "日本語 é 👩‍👩‍👧"},
		{"a letter whose code ends like a line end", "a\rĊ", "a Ċ"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"string that never ends", "a\x1b]0;evil\nb", "a b"},
		{"sequence broken off", "a\x1b[12\nb", "a b"},
	}
	for _, tt := range tests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestProgressBarRedrawsItsLineAndErasesIt(t *testing.T) {
	c := cleaner{}
	got := string(c.append(nil, []byte("rm -rf /\rls\r\nnext")))
	if want := "rm -rf /\r\x1b[Kls\nnext"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgressBarOnADumbTerminal(t *testing.T) {
	c := cleaner{dumb: true}
	if got := string(c.append(nil, []byte("10%\r20%\r\r\ndone"))); got != "10%\n20%\ndone" {
		t.Errorf("got %q", got)
	}
}

func TestColourStaysWhereItIsWelcomeAndEnds(t *testing.T) {
	c := cleaner{color: true}
	b := c.end(c.append(nil, []byte("\x1b[1;38:5:9mred\x1b[2Kdish\x1b[>4;2m")))
	if got, want := string(b), "\x1b[1;38:5:9mreddish\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However a stream is cut, what comes out is the same, and safe.
func FuzzCleaner(f *testing.F) {
	f.Add([]byte("a\x1b[31mred\x1b[0m\r50%\r\n\x1b]0;t\x07日本\xff\xc3"), 3)
	f.Add([]byte("\u009b1m\x1bP\x1b\\x\x1b(B"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var whole, pieces cleaner
		want := string(whole.end(whole.append(nil, data)))
		if len(data) > 0 {
			cut = max(cut, -cut, 0) % (len(data) + 1)
		} else {
			cut = 0
		}
		b := pieces.append(nil, data[:cut])
		b = pieces.append(b, data[cut:])
		if got := string(pieces.end(b)); got != want {
			t.Errorf("cut at %d: %q, whole: %q", cut, got, want)
		}
		for _, r := range strings.ReplaceAll(want, "\r\x1b[K", "") {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
				t.Errorf("%q lets %q through", data, r)
			}
		}
	})
}
