package dotenv

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joho/godotenv"

	"github.com/Insights/insightscli/internal/testenv"
)

// awkward are values that at least one reader has a rule of its own for.
func awkward() []string {
	values := []string{
		"", "plain", " ", "  both  ", "\t", "#", "#x", "a#b", "a #b", " # c", "a # b # c", "=", "==", "a=b", ":", "~", "~/x", "*", "?", "[a]", "{a,b}",
		"'", "''", `"`, `""`, `'"`, `"'`, `'"'`, "it's", `say "hi"`, `it's "quoted"`, `"it's"`, `'it"s'`, "`", "`id`", "it's `id`",
		"$", "$$", "$HOME", "${HOME}", "$(id)", "it's $HOME", "it's ${HOME}", "it's $(id)", `\$HOME`, `it's \$HOME`, `it's \\$HOME`, "abc$123def", "$(", "it's $(", "${", "it's ${", "${99999}", "it's ${99999}",
		`\`, `\\`, `\\\`, `a\`, `a\\`, `it's\`, `it's\\`, `it's "\`, `"\`, `'\`, `\n`, `\\n`, `it's \n`, `it's \r\t\x`, `C:\temp\new`, `\"`, `it's \"`, `\'`, `'\''`, `a\'b`, "\\\n", "it's\\\n", "\\\r\n", `\ `, `it's \ `,
		"\n", "\n\n", "a\n", "\na", "a\nb", "it's\nb", "it's\n", "a\n\nb\n\n", "\r", "a\rb", "a\r", "it's\r", "\r\n", "a\r\nb", "it's\r\nb", "\r\r\n", "\n\r", "\r\n\r\n", "it's\r\n\\",
		"FOO=bar", "a\nFOO=bar", "a\nFOO='bar", "a\nFOO=\"bar\"\n", "a\n# comment\nb", "a\n'", "export A=1", "!", "it's!!", "a;b", "a&b|c<d>e(f)", "%s%d", "-n", "-----BEGIN X-----\nMII==\n-----END X-----\n",
		"é", "日本語", "👩‍👩‍👧", "\ufeff", "it's\ufeff", "\u00a0x\u00a0", "\u0085", "\xff", "it's\xff\xfe", "\x80\\", "it's\x81\x82\x83\x88", "é\\", "\x01\x02\x1b[31m\x7f", "\u2028", "x\v\fy",
	}
	return append(values, strings.Repeat("x", 100_000), strings.Repeat("it's \\\"$", 5_000))
}

// randomValue draws from the characters that mean something to somebody.
func randomValue(r *rand.Rand) string {
	pieces := []string{"'", `"`, `\`, "$", "`", "#", " ", "\n", "\r", "\t", "=", "n", "r", "a", "A", "1", "{", "}", "(", ")", "K=", "é", "\xff", "\x81", "!", ";", "${99999}", `"#"; K=${K%?}`}
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// shells are those of this machine.
func shells(t testing.TB) [][]string {
	var found [][]string
	for _, s := range [][]string{{"sh"}, {"dash"}, {"bash"}, {"bash", "--posix"}, {"ksh"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(s[0]); err == nil {
			found = append(found, s)
		}
	}
	testenv.Need(t, "a POSIX shell", len(found) > 0)
	return found
}

// sourced returns what a shell that sources text passes on to its children.
func sourced(t testing.TB, shell []string, text []byte, keys []string, environ ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var script strings.Builder
	script.WriteString("set -a\n. ./env\nset +a\n")
	for _, k := range keys {
		fmt.Fprintf(&script, "printf '%%s\\000' \"$%s\"\n", k)
	}
	for name, b := range map[string][]byte{"env": text, "script": []byte(script.String())} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], "script")...)
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=/nowhere", "PATH=" + os.Getenv("PATH")}, environ...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", shell, err)
	}
	parts := strings.Split(string(out), "\x00")
	got := map[string]string{}
	for i, k := range keys {
		got[k] = parts[i]
	}
	return got
}

func key(i int) string { return fmt.Sprintf("K%d", i) }

// written returns file with each value under a key of its own.
func written(t testing.TB, file string, values []string) *File {
	t.Helper()
	f := Parse([]byte(file))
	for i, v := range values {
		if err := f.Set(key(i), v); err != nil {
			t.Fatalf("%q: %v", v, err)
		}
	}
	return f
}

// checkReaders compares what each reader makes of f with the values that were set.
func checkReaders(t testing.TB, f *File, values []string, shells ...[]string) {
	t.Helper()
	theirs, err := godotenv.UnmarshalBytes(f.Bytes())
	if err != nil {
		t.Errorf("godotenv: %v", err)
	}
	var keys []string
	again := Parse(f.Bytes())
	for i, v := range values {
		keys = append(keys, key(i))
		if got, _ := again.Get(key(i)); got != v {
			t.Errorf("%q was read as %q", v, got)
		}
		if got := theirs[key(i)]; got != v {
			t.Errorf("godotenv read %q as %q", v, got)
		}
	}
	for _, s := range shells {
		got := sourced(t, s, f.Bytes(), keys, "LC_ALL=C.UTF-8")
		for i, v := range values {
			if got[key(i)] != v {
				t.Errorf("%s read %q as %q", s, v, got[key(i)])
			}
		}
	}
}

// old are files whose lines are replaced: every style that a user may have.
func old(n int) []string {
	var files []string
	for _, style := range []string{"%s=old\n", "%s=\n", "export %s='old'\n", "%s=\"old\"\n", "%s=\"o\nld\"\n", "%s = old # note # more\n", "  %s='old'  # it's\n", "%s: old\n", "%s=a b\n%[1]s= # c\n"} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, style, key(i))
		}
		files = append(files, b.String())
	}
	return files
}

func TestEveryReaderReadsTheValueThatWasSet(t *testing.T) {
	values := awkward()
	for _, file := range append(old(len(values)), "", "A=1") {
		f := written(t, file, values)
		checkReaders(t, f, values, shells(t)...)
		before := f.Bytes()
		for i, v := range values {
			if err := f.Set(key(i), v); err != nil {
				t.Fatal(err)
			}
		}
		if string(f.Bytes()) != string(before) {
			t.Error("setting the same values again changes the file")
		}
	}
}

func TestEveryReaderReadsRandomValues(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, file := range append(old(200), "") {
		values := make([]string, 200)
		for i := range values {
			values[i] = randomValue(r)
		}
		checkReaders(t, written(t, file, values), values, shells(t)...)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A shell puts a CR behind what is not quoted in such a file; the others read it well.
func TestValuesInFilesWithCRLF(t *testing.T) {
	values := awkward()
	for _, file := range append(old(len(values)), "A=1\n") {
		f := written(t, strings.ReplaceAll(file, "\n", "\r\n"), values)
		checkReaders(t, f, values)
		for _, l := range strings.SplitAfter(string(f.Bytes()), "\n") {
			if l != "" && !strings.HasSuffix(l, "\r\n") {
				t.Fatalf("line %q ends with LF", l)
			}
		}
	}
}

// Sourcing runs nothing that stands in a value.
func TestSourcingRunsNoValue(t *testing.T) {
	for _, s := range shells(t) {
		for _, file := range old(1)[:8] { // the last one has a command of its own
			values := []string{"x$(touch ran)`touch ran`'; touch ran; '\n touch ran"}
			dir := t.TempDir()
			f := written(t, file, values)
			if err := os.WriteFile(filepath.Join(dir, "env"), f.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), s[0], append(s[1:], "-c", ". ./env")...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %s%v", s, out, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Errorf("%s ran a part of the value", s)
			}
		}
	}
}
