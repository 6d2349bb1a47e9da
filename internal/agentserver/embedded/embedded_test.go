package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/Insights/insightscli/internal/testenv"
)

func packed(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func files(t *testing.T, content string) fstest.MapFS {
	return fstest.MapFS{"insights-agent-server-linux-amd64.gz": {Data: packed(t, content)}}
}

func TestUnpackOnceByContent(t *testing.T) {
	dir := t.TempDir()
	fsys := files(t, "#!/bin/sh\n")
	path, err := unpack(fsys, dir, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(fsys["insights-agent-server-linux-amd64.gz"].Data)
	if want := filepath.Join(dir, hex.EncodeToString(sum[:]), "insights-agent-server"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && before.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", before.Mode())
	}
	if _, err := unpack(fsys, dir, "amd64"); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("unpacked a second time, %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// A power cut may leave a file of the right name and the wrong length.
func TestUnpackReplacesATornFile(t *testing.T) {
	dir := t.TempDir()
	fsys := files(t, "the whole program")
	path, err := unpack(fsys, dir, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("the"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(fsys, dir, "amd64"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "the whole program" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestUnpackAtOnce(t *testing.T) {
	dir := t.TempDir()
	fsys := files(t, strings.Repeat("program ", 100_000))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			path, err := unpack(fsys, dir, "amd64")
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := os.ReadFile(path); err != nil || len(b) != 800_000 {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	wg.Wait()
}

func TestRecordedDigestNamesTheDirectory(t *testing.T) {
	fsys := files(t, "program")
	recorded := strings.Repeat("ab", sha256.Size)
	fsys["insights-agent-server-linux-amd64.gz.sha256"] = &fstest.MapFile{Data: []byte(recorded + "\n")}
	path, err := unpack(fsys, t.TempDir(), "amd64")
	if err != nil || filepath.Base(filepath.Dir(path)) != recorded {
		t.Errorf("%s, %v", path, err)
	}
}

func TestNoneForAPlatform(t *testing.T) {
	if _, err := unpack(files(t, "program"), t.TempDir(), "riscv64"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := Self("riscv64"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestDamagedArchiveLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	fsys := files(t, "program")
	data := fsys["insights-agent-server-linux-amd64.gz"].Data
	data[len(data)/2] ^= 0xff
	if _, err := unpack(fsys, dir, "amd64"); err == nil {
		t.Fatal("a damaged archive was unpacked")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(found) != 0 {
		t.Errorf("left %v, %v", found, err)
	}
}

func TestStaticTellsAProgramThatNeedsALoader(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux programs")
	}
	shell, err := exec.LookPath("sh")
	testenv.Need(t, "a shell", err == nil)
	if err := static(shell); !errors.Is(err, ErrNone) {
		t.Errorf("%s is taken for static: %v", shell, err)
	}
	if err := static("/dev/null"); !errors.Is(err, ErrNone) {
		t.Errorf("/dev/null is taken for a program: %v", err)
	}
}

// A program that was just unpacked can be started, whatever this process starts at the
// same time: a child that is between fork and exec holds what was open for writing.
func TestStartedWhileOthersUnpack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts are not programs here")
	}
	dir, fsys := t.TempDir(), files(t, "#!/bin/sh\n"+strings.Repeat("#\n", 1<<16)+"exit 0\n")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 30 {
				path, err := unpack(fsys, filepath.Join(dir, fmt.Sprint(i, n)), "amd64")
				if err == nil {
					err = exec.CommandContext(t.Context(), path).Run()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
