package jail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHidesCredential(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("clean/a.sh", "export EDITOR=vi\n")
	write("dirty/a.sh", "export EDITOR=vi\n")
	outside := write("elsewhere", "export API_KEY=x\n")
	write("deep/sub/b.sh", "export API_KEY=x\n")
	write("linked/a.sh", "")
	if err := os.Symlink(outside, filepath.Join(dir, "linked", "b.sh")); err != nil {
		t.Fatal(err)
	}
	write("dirty/b.sh", "export API_KEY=x\n")
	write("large/a.sh", strings.Repeat("#\n", copyLimit))
	for name, want := range map[string]bool{
		"clean": false, "absent": false, "dirty": true, "deep": true, "linked": true, "large": true,
	} {
		if got := hidesCredential(filepath.Join(dir, name), setsCredential); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
