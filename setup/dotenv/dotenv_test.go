package dotenv

import (
	"crypto/x509"
	"encoding/pem"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joho/godotenv"

	"github.com/Insights/insightscli/internal/errs"
)

// set gives keys values: key, value, key, value…
func set(t testing.TB, file string, pairs ...string) string {
	t.Helper()
	f := Parse([]byte(file))
	for p := range slices.Chunk(pairs, 2) {
		if err := f.Set(p[0], p[1]); err != nil {
			t.Fatal(err)
		}
	}
	return string(f.Bytes())
}

// Faults that users of such tools reported. What the file says is read, and all of it
// but the new key is still there afterwards.
func TestWhatIsRead(t *testing.T) {
	tests := []struct {
		name, file string
		want       map[string]string
		problems   []int
	}{
		{name: "comments", file: "A=b#c\nB=a # c\nC=#x\nD= # c\nE=a # b # c\nF='a # b' # c\nG=\"#\"#c\n", want: map[string]string{"A": "b#c", "B": "a", "C": "#x", "D": "", "E": "a", "F": "a # b", "G": "#"}},
		{name: "a dollar that is no reference", file: "P=abc$123def\nQ=\"p$$w$ORD\"\nR=$(id)\nS=${1-x}$\n", want: map[string]string{"P": "abc$123def", "Q": "p$$w$ORD", "R": "$(id)", "S": "${1-x}$"}},
		{name: "references", file: "A=1\nB=$A/${A}\\$A${NO}\nC=\"$A\n${A}\\${A}\"\nD='$A'\nE=$E${E}\n", want: map[string]string{"A": "1", "B": "1/1$A", "C": "1\n1${A}", "D": "$A", "E": "$E"}},
		{name: "numbers", file: "ZIP=0123\nPHONE=+1\n", want: map[string]string{"ZIP": "0123", "PHONE": "+1"}},
		{name: "escapes", file: `A="x\ny"` + "\n" + `B='x\ny'` + "\n" + `C=x\ny` + "\n" + `D="x\\ny\"\$\t"` + "\n" + "E=\"x\ny\"\n", want: map[string]string{"A": "x\ny", "B": `x\ny`, "C": `x\ny`, "D": `x\ny"$\t`, "E": "x\ny"}},
		{name: "a bad line", file: "A=1\nTEST_ENV=\"test\"test\"\nB='…\\!…'\nno sense\nC=3\n", want: map[string]string{"A": "1", "B": `…\!…`, "C": "3"}, problems: []int{2, 4}},
		{name: "an open quote", file: "A=\"1\nB=\"2\"\nC='3\n", want: map[string]string{"B": "2"}, problems: []int{1, 3}},
		{name: "a byte order mark", file: "\ufeffA=1\nB=2\n", want: map[string]string{"A": "1", "B": "2"}},
		{name: "keys within a value", file: "P='-----BEGIN\nFOO=bar\nMII==\n-----END'\nQ=\"-----BEGIN\nFOO=bar\n# x\n\nMII==\n-----END\" # c\n", want: map[string]string{"P": "-----BEGIN\nFOO=bar\nMII==\n-----END", "Q": "-----BEGIN\nFOO=bar\n# x\n\nMII==\n-----END"}},
		{name: "CRLF", file: "A=1\r\nB='2'\r\nC=\"3\r\n4\"\r\n\r\n# c\r\nD=5 # c\r\nE=\r\n", want: map[string]string{"A": "1", "B": "2", "C": "3\n4", "D": "5", "E": ""}},
		{name: "CR alone", file: "A=1\rB='2'\rC=3", want: map[string]string{"A": "1", "B": "2", "C": "3"}},
		{name: "export", file: "export A=1\n export\tB = 2\nexport=3\nexport C\n", want: map[string]string{"A": "1", "B": "2", "export": "3"}, problems: []int{4}},
		{name: "colons and odd names", file: "A: 1\nB :2\nC.D=3\nE-F=4\n5=5\nÄ=6\n", want: map[string]string{"A": "1", "B": "2", "C.D": "3", "E-F": "4"}, problems: []int{5, 6}},
		{name: "twice", file: "A=1\nA='2'\n", want: map[string]string{"A": "2"}},
		{name: "quotes that godotenv escapes", file: "A='it\\'s'\nB='a\\'\nC=\"a\\\\\" # c\nD=\"\\\"\"\n", want: map[string]string{"A": `it\'s`, "B": `a\`, "C": `a\`, "D": `"`}},
		{name: "nothing", file: " \t\n#\n\u00a0", want: map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Parse([]byte(tt.file))
			got := map[string]string{}
			for _, k := range f.Keys() {
				got[k], _ = f.Get(k)
			}
			if !reflect.DeepEqual(got, tt.want) || !slices.Equal(f.Problems(), tt.problems) {
				t.Errorf("read %q, problems %v", got, f.Problems())
			}
			if after := set(t, tt.file, "NEW_KEY", "x y"); !strings.HasPrefix(after, tt.file) || len(after) > len(tt.file)+len("\r\n\r\nNEW_KEY='x y'\r\n") {
				t.Errorf("after a new key: %q", after)
			} else if again := set(t, after, "NEW_KEY", "x y"); again != after {
				t.Errorf("after a second run: %q", again)
			}
		})
	}
}

func TestWhatIsWritten(t *testing.T) {
	tests := []struct{ name, file, value, want string }{
		{"an empty file", "", "new", "K=new\n"},
		{"a mark alone", "\ufeff", "new", "\ufeffK=new\n"},
		{"no final newline", "A=1", "new", "A=1\nK=new\n"},
		{"no final newline, CRLF", "A=1\r\nB=2", "new", "A=1\r\nB=2\r\nK=new\r\n"},
		{"behind a backslash", "A=C:\\dir\\\n", "new", "A=C:\\dir\\\n\nK=new\n"},
		{"behind a backslash at the end", "A=\\", "new", "A=\\\n\nK=new\n"},
		{"behind an open quote", "A='x\n", "it's # y", "A='x\nK=\"it's # y\"\n"},
		{"behind an open quote that would end in it", "A='x\n", "it' # y", "A='x\nK=\"${99999}it'${99999} # y\"\n"},
		{"behind an open quote that would end before it", "A=\"x\n", "# it's", "A=\"x\nK=\"${99999}# it'${99999}s\"\n"},
		{"in place", "# a\n\nA = 1\nexport K=old # why\nB: 2\n", "new", "# a\n\nA = 1\nexport K='new' # why\nB: 2\n"},
		{"in place, last line", "A=1\n  K=old", "new", "A=1\n  K=new"},
		{"the last of two", "K=1\nA=1\nK=2\n", "new", "K=1\nA=1\nK=new\n"},
		{"quotes stay", "K=\"old\"\r\nB='x'\r\n", "new", "K=\"new\"\r\nB='x'\r\n"},
		{"quotes that cannot stay", "K='old'\n", "it's", "K=\"it's\"\n"},
		{"quotes that had better not stay", "K=\"old\"\n", `say "hi"`, "K='say \"hi\"'\n"},
		{"several lines", "K=\"a\nK=b\nc\" # d\nB=1\n", "x\ny", "K=\"x\ny\" # d\nB=1\n"},
		{"no value before a comment", "K= # why\n", "", "K='' # why\n"},
		{"no value", "K=\nA=1\n", "new", "K=new\nA=1\n"},
		{"what no shell reads", "K : old\n", "new", "K=new\n"},
		{"the same", "K=\"new\" # a # b\n", "new", "K=\"new\" # a # b\n"},
		{"the same, read differently elsewhere", "K=a$B\n", "a$B", "K='a$B'\n"},
		{"the same, with an escape", "K=\"a\\nb\"\n", "a\nb", "K=\"a\nb\"\n"},
		{"within a comment", "#K=1\n# K=2\n", "new", "#K=1\n# K=2\nK=new\n"},
		{"a backslash at the end", "", `a\`, "K='a\\'\n"},
	}
	tests[len(tests)-1].want = `K="a\\""#"; K=${K%?}` + "\n"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := set(t, tt.file, "K", tt.value)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := set(t, got, "K", tt.value); again != got {
				t.Errorf("after a second run: %q", again)
			}
		})
	}
}

func TestHeadingStandsOnceBeforeNewKeys(t *testing.T) {
	f := Parse([]byte("A=1"))
	f.Heading("Background agents,\nadded by setup")
	for _, k := range []string{"A", "B", "C"} {
		if err := f.Set(k, "2"); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(f.Bytes()), "A=2\n\n# Background agents,\n# added by setup\nB=2\nC=2\n"; got != want {
		t.Errorf("got %q", got)
	}
	f = Parse(f.Bytes())
	f.Heading("again")
	if err := f.Set("B", "2"); err != nil || f.Changed() {
		t.Errorf("%v: %q", err, f.Bytes())
	}
}

func TestLinesHaveNumbers(t *testing.T) {
	f := Parse([]byte("\ufeffA=1\n\nP='x\ny'\r\nbad\nB=2\nA=3"))
	if f.Line("A") != 7 || f.Line("P") != 3 || f.Line("B") != 6 || f.Line("C") != 0 || !slices.Equal(f.Problems(), []int{5}) {
		t.Errorf("A %d, P %d, B %d, problems %v", f.Line("A"), f.Line("P"), f.Line("B"), f.Problems())
	}
	if got := f.Keys(); !slices.Equal(got, []string{"A", "P", "B"}) {
		t.Errorf("keys %v", got)
	}
}

func TestWhatCannotBeSet(t *testing.T) {
	f := Parse([]byte("A=1\n"))
	for _, tt := range [][2]string{{"", "x"}, {"1A", "x"}, {"A B", "x"}, {"A-B", "x"}, {"A=", "x"}, {"A\n", "x"}, {"Ä", "x"}, {"A", "x\x00secret"}} {
		err := f.Set(tt[0], tt[1])
		if errs.KindOf(err) != errs.Usage || strings.Contains(err.Error(), "secret") || f.Changed() {
			t.Errorf("%q: %v", tt, err)
		}
	}
}

// The example's keys are in one line with \n in double quotes; what Set writes has lines.
func TestPrivateKeysCanBeUsed(t *testing.T) {
	key := testKey(t)
	inOneLine := "K=\"" + strings.ReplaceAll(key, "\n", `\n`) + "\"\n"
	for _, file := range []string{inOneLine, set(t, "", "K", key), set(t, "K=\"old\"\r\n", "K", key), set(t, inOneLine, "K", key)} {
		value, _ := Parse([]byte(file)).Get("K")
		block, _ := pem.Decode([]byte(value))
		if block == nil {
			t.Fatalf("no PEM in %q", file)
		}
		if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			t.Error(err)
		}
		if theirs, err := godotenv.Unmarshal(file); err != nil || theirs["K"] != key {
			t.Errorf("godotenv: %q, %v", theirs, err)
		}
	}
}

// Where nothing of the corpus says otherwise, we read as godotenv and a shell do.
func TestReadersAgree(t *testing.T) {
	corpus := []string{
		"A=1\n", "A=\n", "A=''\nB=\"\"\n", "A=a#b\n", "A=a # b\n", "A='a b' # c\n", "export A=1\nexport  B='2'\n", "\n# x\n\nA=1\n\n", "A=1\nB=${A}2\nC=\"$A $B\"\nD='$A'\n",
		"A='x\ny'\nB=\"x\n\ny\"\n", "A=\"\\\"\\\\\\$\\`\"\n", "A=a=b==\nB=x:y/z@w,%+\n", "A=\"#\"\nB='# #'\n", "  A=1\n\tB=2\n", "A=1", "A='it\"s'\nB=\"it's\"\n", "A=1\nA=2\n", "A=#x\n", "A=é\nB='日本'\n",
	}
	for _, file := range corpus {
		f := Parse([]byte(file))
		theirs, err := godotenv.Unmarshal(file)
		if err != nil {
			t.Errorf("%q: %v", file, err)
		}
		for _, k := range f.Keys() {
			if got, _ := f.Get(k); got != theirs[k] {
				t.Errorf("%q: %s is %q, godotenv says %q", file, k, got, theirs[k])
			}
		}
		for _, s := range shells(t) {
			for k, want := range sourced(t, s, []byte(file), f.Keys()) {
				if got, _ := f.Get(k); got != want {
					t.Errorf("%q: %s is %q, %s says %q", file, k, got, s, want)
				}
			}
		}
	}
}
