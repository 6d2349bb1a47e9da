package seal

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

func open(t *testing.T, path string) *Key {
	t.Helper()
	k, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealedValuesAreOpenedByRunAndName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	value := []byte("a secret value")
	sealed, err := open(t, path).Seal("run-1", "NAME", value)
	if err != nil || bytes.Contains(sealed, value) {
		t.Fatalf("%q, %v", sealed, err)
	}
	k := open(t, path) // another process
	if got, err := k.Open("run-1", "NAME", sealed); err != nil || !bytes.Equal(got, value) {
		t.Errorf("%q, %v", got, err)
	}
	again, err := k.Seal("run-1", "NAME", value)
	if err != nil || bytes.Equal(again, sealed) {
		t.Errorf("the same bytes twice (%v)", err)
	}
	for _, other := range [][2]string{{"run-2", "NAME"}, {"run-1", "OTHER"}, {"run-1N", "AME"}, {"", "run-1NAME"}} {
		if got, err := k.Open(other[0], other[1], sealed); err == nil {
			t.Errorf("%q opened as %q", other, got)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := k.Open("run-1", "NAME", bad); err == nil {
			t.Fatalf("opened with byte %d changed", i)
		}
	}
	for n := range sealed {
		if _, err := k.Open("run-1", "NAME", sealed[:n]); err == nil {
			t.Fatalf("opened when cut to %d bytes", n)
		}
	}
}

func TestEmptyValuesAreSealedToo(t *testing.T) {
	k := open(t, filepath.Join(t.TempDir(), "key"))
	sealed, err := k.Seal("r", "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.Open("r", "n", sealed); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestManyMakeOneKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	var wg sync.WaitGroup
	keys := make([]*Key, 16)
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = Open(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	sealed, err := keys[0].Seal("r", "n", []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if _, err := k.Open("r", "n", sealed); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left (%v)", len(entries), err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func wantRefusal(t *testing.T, path, words string) {
	t.Helper()
	_, err := Open(path)
	if errs.KindOf(err) != errs.Config || !strings.Contains(err.Error(), words) || errs.HintOf(err) == "" {
		t.Errorf("%v (%s, hint %q), want %q", err, errs.KindOf(err), errs.HintOf(err), words)
	}
}

func TestUnfitKeyFilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, size := range []int{0, 31, 33} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, path, "damaged")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "key"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, filepath.Join(dir, "key"), "not a regular file")
}

func TestOpenKeyFilesOfOthersAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs permission bits")
	}
	path := filepath.Join(t.TempDir(), "key")
	open(t, path)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, path, "open to other users (mode 0640)")
	testenv.Need(t, "root, to give a file away", os.Geteuid() == 0)
	for _, err := range []error{os.Chmod(path, 0o600), os.Chown(path, 1234, 1234)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantRefusal(t, path, "belongs to user 1234")
}

func TestKeyNeedsItsDirectory(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "missing", "key")); err == nil {
		t.Error("no error")
	}
}
