package statedb

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

// TestMain lets a test run itself again as another process: see child.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STATEDB_TEST_OPEN"); dir != "" {
		db, err := Open(context.Background(), dir)
		if err != nil {
			os.Stderr.WriteString(string(errs.KindOf(err)) + ": " + err.Error() + "; " + errs.HintOf(err) + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString(db.ID + "\n")
		_ = db.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is this test binary as a process that opens dir and prints its id.
func child(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "STATEDB_TEST_OPEN="+dir)
	return cmd
}

func mustOpen(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func scan[T any](t *testing.T, db *DB, query string) T {
	t.Helper()
	var v T
	if err := db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestOpenMakesASeededDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	db := mustOpen(t, dir)
	if db.Dir != dir || db.Notice != "" || len(db.ID) != 36 {
		t.Errorf("Dir %q, Notice %q, ID %q", db.Dir, db.Notice, db.ID)
	}
	if got := scan[string](t, db, `PRAGMA journal_mode`); got != "wal" {
		t.Errorf("journal mode %s", got)
	}
	if got := scan[int](t, db, `PRAGMA synchronous`); got != 2 {
		t.Errorf("synchronous %d, want 2 (FULL)", got)
	}
	for _, table := range []string{"teams", "users"} {
		if got := scan[int](t, db, `SELECT SUM(id) FROM `+table); got != 1 {
			t.Errorf("%s: ids add up to %d, want 1", table, got)
		}
	}
	if got := scan[string](t, db, `SELECT v FROM meta WHERE k = 'version'`); got != build.Get().Version {
		t.Errorf("written by %q", got)
	}
	again := mustOpen(t, dir)
	if again.ID != db.ID {
		t.Errorf("ID changed from %s to %s", db.ID, again.ID)
	}
}

func TestFilesAreClosedToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs permission bits")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, dir)
	if _, err := db.ExecContext(t.Context(), `INSERT INTO flags (team, key, enabled) VALUES (1, 'x', 1)`); err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{"": 0o700, fileName: 0o600, fileName + "-wal": 0o600, fileName + "-shm": 0o600, lockName: 0o600}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != mode {
			t.Errorf("%q has mode %o, want %o", name, got, mode)
		}
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	names := []string{strings.Repeat("x", 200), "a b%41?c#d&e;f'g\"é"}
	if runtime.GOOS == "windows" {
		names = []string{strings.Repeat("x", 100), "a b%41#d&e;f'é"}
	}
	for _, name := range names {
		dir := filepath.Join(t.TempDir(), name)
		id := mustOpen(t, dir).ID
		if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
			t.Error(err)
		}
		if again := mustOpen(t, dir); again.ID != id {
			t.Errorf("%q: another database was opened", name)
		}
	}
}

// TestManyOpenAtOnce: SQLite fails rather than waits when several change the journal
// mode, and a second seeding would break the first.
func TestManyOpenAtOnce(t *testing.T) {
	dir := t.TempDir()
	const n = 8
	out := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			b, err := child(t, dir).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, b)
			}
			out[i] = string(b)
		})
	}
	wg.Wait()
	for _, id := range out {
		if id != out[0] {
			t.Errorf("ids differ: %q", out)
		}
	}
}

func damage(t *testing.T, dir, how string) {
	t.Helper()
	path := filepath.Join(dir, fileName)
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch how {
	case "text":
		body = []byte(strings.Repeat("this is not a database\n", 500))
	case "truncated":
		body = body[:len(body)/2]
	case "header":
		copy(body[16:], "xxxxxxxxxxxxxxxxxxxxxxxx")
	case "first page":
		copy(body[100:], bytes.Repeat([]byte{0xff}, 3000))
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedDatabaseIsKeptAside(t *testing.T) {
	for _, how := range []string{"text", "truncated", "header", "first page"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			db, err := Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			old := db.ID
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, dir, how)
			bad, err := os.ReadFile(filepath.Join(dir, fileName))
			if err != nil {
				t.Fatal(err)
			}
			db = mustOpen(t, dir)
			if !strings.Contains(db.Notice, "state.db.corrupt-") || strings.Contains(db.Notice, "\n") {
				t.Errorf("Notice %q", db.Notice)
			}
			if db.ID != old { // by which prune finds what the lost runs have left
				t.Errorf("the new database has the id %s, want that of the old one, %s", db.ID, old)
			}
			kept, _ := filepath.Glob(filepath.Join(dir, fileName+".corrupt-*"))
			if len(kept) != 1 {
				t.Fatalf("kept files: %q", kept)
			}
			if got, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(got, bad) {
				t.Errorf("the damaged file was changed (%v)", err)
			}
			if again := mustOpen(t, dir); again.Notice != "" {
				t.Errorf("second Notice %q", again.Notice)
			}
		})
	}
}

func TestManyRepairOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if b, err := child(t, dir).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, b)
			}
		})
	}
	wg.Wait()
	kept, _ := filepath.Glob(filepath.Join(dir, fileName+".corrupt-*"))
	if len(kept) != 1 {
		t.Errorf("kept files: %q", kept)
	}
}

func TestInterruptedCreationIsFinished(t *testing.T) {
	dir := t.TempDir()
	// A process that was killed right after it made the file.
	if err := os.WriteFile(filepath.Join(dir, fileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if db := mustOpen(t, dir); db.Notice != "" || db.ID == "" {
		t.Errorf("Notice %q, ID %q", db.Notice, db.ID)
	}
}

func TestNewerSchemaIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE meta SET v = '9.8.7' WHERE k = 'version'; PRAGMA user_version = 99`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir)
	if errs.KindOf(err) != errs.Config || !strings.Contains(err.Error(), "insightscli 9.8.7") || !strings.Contains(errs.HintOf(err), "9.8.7") {
		t.Errorf("%v (%s; %s)", err, errs.KindOf(err), errs.HintOf(err))
	}
}

func wantRefusal(t *testing.T, err error, kind errs.Kind, words string) {
	t.Helper()
	if err == nil || errs.KindOf(err) != kind || !strings.Contains(err.Error(), words) || errs.HintOf(err) == "" {
		t.Errorf("error %v (kind %s, hint %q), want %s with %q", err, errs.KindOf(err), errs.HintOf(err), kind, words)
	}
}

func TestDirectoryOfAnotherUserIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs owners of files")
	}
	dir := "/usr" // of root
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, 1234, 1234); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(t.Context(), dir)
	wantRefusal(t, err, errs.Config, "belongs to user")
}

func TestDirectoryThatOthersWriteToIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs permission bits")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir)
	wantRefusal(t, err, errs.Config, "other users can write")
}

func TestPathThatIsNoDirectoryIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := Open(t.Context(), dir)
		wantRefusal(t, err, errs.Config, "create the state directory")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, fileName), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir)
	wantRefusal(t, err, errs.Config, "not a regular file")
}

func TestForeignDatabaseFileIsRefused(t *testing.T) {
	testenv.Need(t, "root, to give a file away", os.Geteuid() == 0)
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 1234, 1234)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir)
	wantRefusal(t, err, errs.Config, "belongs to user 1234")
}

func BenchmarkOpen(b *testing.B) {
	b.Run("existing", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			open1(b, dir)
		}
	})
	b.Run("fresh", func(b *testing.B) {
		root := b.TempDir()
		for b.Loop() {
			dir, err := os.MkdirTemp(root, "") //nolint:usetesting // one a round
			if err != nil {
				b.Fatal(err)
			}
			open1(b, dir)
		}
	})
}

func open1(b *testing.B, dir string) {
	db, err := Open(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}
