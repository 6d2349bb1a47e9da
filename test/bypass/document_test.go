//go:build linux

package bypass

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocument holds the list of attempts in docs/network.md to the table.
func TestDocument(t *testing.T) {
	const path = "../../docs/network.md"
	const begin, end = "-run Document -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, found2 := strings.Cut(rest, end)
	if !found || !found2 {
		t.Fatalf("%s has no place for the attempts", path)
	}
	want := before + begin + document(table()) + end + after
	if want == string(text) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("the attempts in %s are not those of the table: UPDATE_GOLDEN=1 go test ./test/bypass -run Document", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// document is the table of attempts, a line a group.
func document(rows []attempt) string {
	var groups []string
	by := map[string][]string{}
	for _, r := range rows {
		if by[r.group] == nil {
			groups = append(groups, r.group)
		}
		by[r.group] = append(by[r.group], r.what)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d attempts:\n\n| what is tried | attempts |\n|---|---|\n", len(rows))
	for _, g := range groups {
		fmt.Fprintf(&b, "| %s (%d) | %s |\n", g, len(by[g]), strings.ReplaceAll(strings.Join(by[g], "; "), "*", `\*`))
	}
	b.WriteString("\n")
	return b.String()
}
