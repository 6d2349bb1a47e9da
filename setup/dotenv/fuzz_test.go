package dotenv

import (
	"bytes"
	"strings"
	"testing"

	"github.com/joho/godotenv"
)

func seeds(f *testing.F, add func(file string)) {
	f.Helper()
	for _, file := range []string{
		"", "A=1\n# c\n\nexport B='2'\r\n", "\ufeffA=\"x\ny\" # c", "A='open\nB=\"2\"\nA=3", "K: a # b # c\r", "A=$A${B}\\$C\nK=\"\\\\\"\n",
		"TEST_ENV=\"test\"test\"\nK=1", `K="a\\""#"; K=${K%?} # c`, "K= # c\nexport K\nA=\\", "A='x\n\x00\xff",
	} {
		add(file)
	}
}

// Whatever is parsed comes out as it went in, and its lines cover it.
func FuzzParse(f *testing.F) {
	seeds(f, func(file string) { f.Add([]byte(file)) })
	f.Fuzz(func(t *testing.T, src []byte) {
		file := Parse(src)
		if !bytes.Equal(file.Bytes(), src) || file.Changed() {
			t.Fatalf("%q became %q", src, file.Bytes())
		}
		at := len(src) - len(bytes.TrimPrefix(src, []byte(mark)))
		for _, l := range file.lines {
			if l.start != at || l.end <= at {
				t.Fatalf("a line from %d to %d behind %d", l.start, l.end, at)
			}
			at = l.end
		}
		if at != len(src) && len(src) != len(mark) {
			t.Fatalf("%d of %d bytes are lines", at, len(src))
		}
		for _, k := range file.Keys() {
			if _, ok := file.Get(k); !ok || file.Line(k) == 0 {
				t.Fatalf("no value of %q", k)
			}
		}
		_ = file.Diff("x", nil)
	})
}

// A key that was set has its value, for godotenv too where it read the file as we do;
// every other line is what it was, and setting it again changes nothing.
func FuzzSet(f *testing.F) {
	seeds(f, func(file string) { f.Add(file, "it's \\\"$A\n#") })
	f.Fuzz(func(t *testing.T, src, value string) {
		const key = "K"
		before := Parse([]byte(src))
		after := Parse([]byte(src))
		if err := after.Set(key, value); err != nil {
			if !strings.ContainsRune(value, 0) {
				t.Fatal(err)
			}
			return
		}
		if after = Parse(after.Bytes()); !after.keeps(before, key) {
			t.Fatalf("%q became %q", src, after.Bytes())
		}
		if got, _ := after.Get(key); got != value {
			t.Fatalf("%q was read as %q from %q", value, got, after.Bytes())
		}
		twice := Parse(after.Bytes())
		if err := twice.Set(key, value); err != nil || twice.Changed() {
			t.Fatalf("the second run made %q of %q: %v", twice.Bytes(), after.Bytes(), err)
		}
		if agree(before) {
			if theirs, err := godotenv.UnmarshalBytes(after.Bytes()); err != nil || theirs[key] != value {
				t.Fatalf("godotenv read %q from %q: %v", theirs[key], after.Bytes(), err)
			}
		}
	})
}

// agree reports whether godotenv reads f as we do.
func agree(f *File) bool {
	theirs, err := godotenv.UnmarshalBytes(bytes.TrimPrefix(f.src, []byte(mark)))
	if err != nil || len(f.Problems()) > 0 || len(theirs) != len(f.last) || bytes.HasPrefix(f.src, []byte(mark)) {
		return false
	}
	for k, v := range theirs {
		if ours, ok := f.Get(k); !ok || ours != v {
			return false
		}
	}
	return true
}
