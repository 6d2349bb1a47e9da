package serverctl

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestLogKeepsItsLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("of the image"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := openLog(path)
	defer log.close()
	long := strings.Repeat("x", 2*maxLine)
	for i := range 2 * maxLog / len(long) {
		log.Info("line "+strconv.Itoa(i), "v", long)
	}
	tail := log.tail()
	if len(tail) != tailLines || len(tail[0]) > maxLine || !strings.Contains(tail[tailLines-1], "line 1023") {
		t.Errorf("%d lines, %.80q", len(tail), tail[len(tail)-1])
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) > maxLog || !strings.Contains(string(b[:100]), "line 0") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestLogThatCannotBeMadeIsDoneWithout(t *testing.T) {
	log := openLog(filepath.Join(t.TempDir(), "no", "such", "directory"))
	defer log.close()
	log.Info("all the same")
	if tail := log.tail(); len(tail) != 1 || !strings.Contains(tail[0], "all the same") {
		t.Errorf("%q", tail)
	}
}
