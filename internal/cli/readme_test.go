package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestREADME compares the generated tables of README with their sources;
// UPDATE_GOLDEN=1 writes them anew. They stand between the lines
// <!-- NAME: begin --> and <!-- NAME: end -->.
func TestREADME(t *testing.T) {
	path := filepath.Join("..", "..", "README.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for name, table := range map[string]string{"environment": environmentMarkdown(), "exit-codes": exitCodesMarkdown()} {
		begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->", name)
		before, rest, ok := strings.Cut(text, begin)
		old, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Errorf("README has no %q … %q", begin, end)
			continue
		}
		if old != table && !updateGolden() {
			t.Errorf("the table %s is out of date; UPDATE_GOLDEN=1 writes it anew", name)
		}
		text = before + begin + table + end + after
	}
	if updateGolden() && text != string(b) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
