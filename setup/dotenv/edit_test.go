package dotenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// file is a .env in a directory of its own.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".env")
	put(t, path, text)
	return path
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// alone fails if something but the names lies in dir.
func alone(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("in the directory lie %q, want %q", got, names)
	}
}

// setting is a change that sets key.
func setting(key, value string) func(*File) error {
	return func(f *File) error { return f.Set(key, value) }
}

func TestEditMakesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".env")
	if changed, err := Edit(t.Context(), path, func(*File) error { return nil }); err != nil || changed {
		t.Errorf("without a change: %t, %v", changed, err)
	}
	alone(t, filepath.Dir(path))
	if changed, err := Edit(t.Context(), path, setting("DEBUG", "1")); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if got := text(t, path); got != "DEBUG=1\n" {
		t.Errorf("%q", got)
	}
	alone(t, filepath.Dir(path), ".env")
}

func TestASecondRunWritesNothing(t *testing.T) {
	path := file(t, "# mine\r\nA = 1")
	if changed, err := Edit(t.Context(), path, setting("B", "it's")); err != nil || !changed {
		t.Fatal(changed, err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := Edit(t.Context(), path, setting("B", "it's")); err != nil || changed {
		t.Errorf("%t, %v", changed, err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Errorf("the file was written again: %v", err)
	}
	if got := text(t, path); got != "# mine\r\nA = 1\r\nB=\"it's\"\r\n" {
		t.Errorf("%q", got)
	}
}

func TestAnErrorOfTheChangeEndsTheEdit(t *testing.T) {
	path := file(t, "A=1\n")
	wrong := errors.New("wrong")
	changed, err := Edit(t.Context(), path, func(f *File) error { return errors.Join(f.Set("A", "2"), wrong) })
	if changed || !errors.Is(err, wrong) || text(t, path) != "A=1\n" {
		t.Errorf("%t, %v: %q", changed, err, text(t, path))
	}
	alone(t, filepath.Dir(path), ".env")
}

// Whoever sees what is wrong gets one line without the name of a temporary file, and
// what to do; nothing is written.
func TestFilesThatCannotBeEdited(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, " is a directory"},
		{"100 MB", func(t *testing.T, path string) { put(t, path, ""); must(t, os.Truncate(path, 100<<20)) }, " is larger than 1 MiB"},
		{"binary", func(t *testing.T, path string) { put(t, path, "A=1\n\x00") }, " is no text: it holds a NUL byte"},
		{"UTF-16", func(t *testing.T, path string) { put(t, path, "\xff\xfeA\x00=\x001\x00") }, " is no text: it holds a NUL byte"},
		{"read-only", func(t *testing.T, path string) { put(t, path, "A=1\n"); must(t, os.Chmod(path, 0o400)) }, " is read-only"},
		{"dangling link", func(t *testing.T, path string) { must(t, os.Symlink("store/env", path)) }, " which does not exist"},
		{"link in a circle", func(t *testing.T, path string) { must(t, os.Symlink(".env", path)) }, " leads in a circle"},
		{"link to a directory", func(t *testing.T, path string) { must(t, os.Symlink(".", path)) }, " is a directory"},
		{"link to the directory above", func(t *testing.T, path string) { must(t, os.Symlink("../", path)) }, " is a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), ".env")
			tt.make(t, path)
			before, err := os.Lstat(path)
			must(t, err)
			_, err = Edit(t.Context(), path, setting("NEW", "1"))
			refused(t, err, tt.want)
			refused(t, MayEdit(path), tt.want)
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || after.Size() != before.Size() {
				t.Errorf("it is another file now: %v", err)
			}
			alone(t, filepath.Dir(path), ".env")
		})
	}
}

// What Edit could do, MayEdit allows, and leaves nothing behind.
func TestMayEdit(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".env")
	must(t, MayEdit(path))
	put(t, path, "A=1\n")
	must(t, MayEdit(path))
	alone(t, filepath.Dir(path), ".env")
	refused(t, MayEdit(filepath.Join(path+".d", ".env")), "open the directory of ")
}

func TestWithoutADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", ".env")
	_, err := Edit(t.Context(), path, setting("NEW", "1"))
	refused(t, err, "open the directory of ")
	_, err = Edit(t.Context(), file(t, "A=1\n")+"/.env", setting("NEW", "1"))
	refused(t, err, "not a directory")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x00") || strings.Contains(err.Error(), ".tmp-") {
		t.Errorf("%v, want one line with %q", err, want)
	}
	if errs.KindOf(err) == errs.Internal || errs.HintOf(err) == "" {
		t.Errorf("%v is %s with the hint %q", err, errs.KindOf(err), errs.HintOf(err))
	}
}

func TestLinksAreWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"store/deep", "checkout"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	put(t, filepath.Join(dir, "store/env"), "A=1\n")
	must(t, os.Symlink(filepath.Join(dir, "store/env"), filepath.Join(dir, "absolute")))
	must(t, os.Symlink("../store/env", filepath.Join(dir, "checkout/.env")))
	must(t, os.Symlink("checkout/.env", filepath.Join(dir, "twice")))
	must(t, os.Symlink("store/deep", filepath.Join(dir, "linked")))
	must(t, os.Symlink("../env", filepath.Join(dir, "store/deep/.env"))) // store/env, not the .. of the link
	for i, name := range []string{"absolute", "checkout/.env", "twice", "linked/.env"} {
		path := filepath.Join(dir, name)
		before, err := os.Readlink(path)
		must(t, err)
		if _, err := Edit(t.Context(), path, setting(key(i), "x")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after, err := os.Readlink(path); err != nil || after != before {
			t.Errorf("%s leads to %q: %v", name, after, err)
		}
	}
	if got := text(t, filepath.Join(dir, "store/env")); got != "A=1\nK0=x\nK1=x\nK2=x\nK3=x\n" {
		t.Errorf("%q", got)
	}
	alone(t, filepath.Join(dir, "store"), "deep", "env")
	if f, err := Read(filepath.Join(dir, "twice")); err != nil || f.Line("K3") != 5 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestLeftoversOfKilledWritersAreRemoved(t *testing.T) {
	path := file(t, "A=1\n")
	dir := filepath.Dir(path)
	for _, name := range []string{".env.tmp-0123456789abcdef", ".env.tmp-0123456789abcde", ".env.tmp-", ".env.tmp-0123456789abcdeg", "x.env.tmp-0123456789abcdef"} {
		put(t, filepath.Join(dir, name), "A=")
	}
	if _, err := Edit(t.Context(), path, setting("A", "1")); err != nil {
		t.Fatal(err)
	}
	alone(t, dir, ".env", ".env.tmp-", ".env.tmp-0123456789abcde", ".env.tmp-0123456789abcdeg", "x.env.tmp-0123456789abcdef")
}

func TestEditsAtOnceLoseNoKey(t *testing.T) {
	path := file(t, "")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := Edit(t.Context(), path, setting(key(i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f, err := Read(path); err != nil || len(f.Keys()) != 20 {
		t.Errorf("%v: %q", err, text(t, path))
	}
	alone(t, filepath.Dir(path), ".env")
}

// An editor knows nothing of our lock.
func TestWhatAnotherProgramWritesMeanwhileIsKept(t *testing.T) {
	path := file(t, "A=1\n")
	times := 0
	e := editor{at: func(stage string) {
		if stage == "compare" && times == 0 {
			times++
			put(t, path, "A=1\nB=2\n")
		}
	}}
	if changed, err := e.edit(t.Context(), path, setting("C", "3")); err != nil || !changed || text(t, path) != "A=1\nB=2\nC=3\n" {
		t.Errorf("%t, %v: %q", changed, err, text(t, path))
	}
	e.at = func(stage string) {
		if stage == "compare" {
			times++
			put(t, path, strings.Repeat("#", times)+"\n")
		}
	}
	if _, err := e.edit(t.Context(), path, setting("C", "4")); errs.KindOf(err) != errs.Conflict {
		t.Errorf("%v", err)
	}
	alone(t, filepath.Dir(path), ".env")
}

func TestCanceled(t *testing.T) {
	path := file(t, "A=1\n")
	ctx, cancel := context.WithCancel(t.Context())
	e := editor{at: func(stage string) {
		if stage == "flush" {
			cancel()
		}
	}}
	if _, err := e.edit(ctx, path, setting("A", "2")); !errors.Is(err, context.Canceled) || text(t, path) != "A=1\n" {
		t.Errorf("%v: %q", err, text(t, path))
	}
	// and while it waits for the lock
	ctx, cancel = context.WithCancel(t.Context())
	e.at = func(stage string) {
		if stage == "read" {
			cancel()
			if _, err := Edit(ctx, path, setting("A", "3")); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
	}
	if _, err := e.edit(t.Context(), path, setting("A", "2")); err != nil || text(t, path) != "A=2\n" {
		t.Errorf("%v: %q", err, text(t, path))
	}
	alone(t, filepath.Dir(path), ".env")
}

func TestReadOfNoFile(t *testing.T) {
	f, err := Read(filepath.Join(t.TempDir(), ".env"))
	if err != nil || len(f.Keys()) != 0 || f.Changed() {
		t.Errorf("%v, %v", f, err)
	}
}
