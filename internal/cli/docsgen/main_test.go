package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReleasesCarryCompletionsAndManPages(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{dir, "2026-11-29T01:02:03+01:00"}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"completions/insightscli.bash": "__start_insightscli",
		"completions/insightscli.zsh":  "#compdef",
		"completions/insightscli.fish": "complete -c insightscli",
		"completions/insightscli.ps1":  "Register-ArgumentCompleter",
		"man/insightscli.1":            "insightscli-run",
		"man/insightscli-run.1":        `"Nov 2026"`,
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s does not have %s (%v)", file, want, err)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "yesterday"}, {"a", "b", "c"}} {
		if err := run(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
