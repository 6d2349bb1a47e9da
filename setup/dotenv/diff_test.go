package dotenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "# %d\n", i)
		}
		return b.String()
	}
	tests := []struct {
		name, file string
		pairs      []string
		want       string
	}{
		{"nothing", "A=1\n", []string{"A", "1"}, ""},
		{"a new file", "", []string{"A", "1", "B", "2"}, "@@ -0,0 +1,2 @@\n+A=1\n+B=2\n"},
		{"a new key", "A=1\n", []string{"B", "2"}, "@@ -1,1 +1,2 @@\n A=1\n+B=2\n"},
		{"in the middle", lines(1, 9) + "A=1\n" + lines(11, 20), []string{"A", "2"}, "@@ -7,7 +7,7 @@\n # 7\n # 8\n # 9\n-A=1\n+A=2\n # 11\n # 12\n # 13\n"},
		{"two places", "A=1\n" + lines(2, 8) + "B=1\n" + lines(10, 15) + "C=1\n", []string{"A", "2", "B", "2", "C", "2"}, "@@ -1,4 +1,4 @@\n-A=1\n+A=2\n # 2\n # 3\n # 4\n@@ -6,11 +6,11 @@\n # 6\n # 7\n # 8\n-B=1\n+B=2\n # 10\n # 11\n # 12\n # 13\n # 14\n # 15\n-C=1\n+C=2\n"},
		{"CRLF and control characters", "A=1\r\n# \x1b]0;x\x07\r\n", []string{"A", "2"}, "@@ -1,2 +1,2 @@\n-A=1\n+A=2\n # �]0;x�\n"},
		{"several lines", "A='1\n2'\n", []string{"A", "3\n4\n5"}, "@@ -1,2 +1,3 @@\n-A='1\n-2'\n+A='3\n+4\n+5'\n"},
		{"secrets", "export API_KEY='old secret' # secret\n#TOKEN=secret\n# export MY_PASSWORD: secret\nX=\"sec\"ret\n", []string{"API_KEY", "new secret", "S", "postgres://me:secret@db/x", "P", "-----BEGIN PRIVATE KEY-----\nsecret", "Q", "x"}, "@@ -1,4 +1,7 @@\n-export API_KEY=[hidden]\n+export API_KEY=[hidden]\n # TOKEN=[hidden]\n # MY_PASSWORD=[hidden]\n [a line that cannot be read]\n+S=[hidden]\n+P=[hidden]\n+Q=x\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Parse([]byte(tt.file))
			for i := 0; i < len(tt.pairs); i += 2 {
				must(t, f.Set(tt.pairs[i], tt.pairs[i+1]))
			}
			want := tt.want
			if want != "" {
				want = "--- .env\n+++ .env\n" + want
			}
			if got := f.Diff(".env", nil); got != want {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func TestTheCallerSaysWhatIsSecret(t *testing.T) {
	f := Parse(nil)
	must(t, f.Set("KEY", "shown"))
	must(t, f.Set("NAME", "masked"))
	if got := f.Diff("x", func(key string) bool { return key == "NAME" }); !strings.Contains(got, "+KEY=shown\n+NAME=[hidden]\n") {
		t.Error(got)
	}
}

func ExampleEdit() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, ".env")
	changed, err := Edit(context.Background(), path, func(f *File) error {
		f.Heading("added by setup")
		return f.Set("GREETING", "it's me")
	})
	f, _ := Read(path)
	fmt.Printf("%t %v\n%s", changed, err, f.Bytes())
	// Output:
	// true <nil>
	// # added by setup
	// GREETING="it's me"
}
