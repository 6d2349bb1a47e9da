package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/term"
)

// updateGolden is whether golden files are written instead of compared.
func updateGolden() bool { return os.Getenv("UPDATE_GOLDEN") == "1" }

// walk visits cmd and all that is below it.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}

// TestHelpGolden compares the help of every command with its file; a new command
// is covered without anybody remembering.
func TestHelpGolden(t *testing.T) {
	dir := filepath.Join("testdata", "help")
	known := map[string]bool{}
	streams, _, out, _ := term.Test()
	root := newRootCmd(newApp(Process{Streams: streams, Dir: t.TempDir()}))
	root.InitDefaultHelpCmd()
	walk(root, func(cmd *cobra.Command) {
		out.Reset()
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".txt"
		known[name] = true
		compareGolden(t, filepath.Join(dir, name), out.Bytes())
	})
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s belongs to no command: remove it", f.Name())
		}
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if updateGolden() {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; UPDATE_GOLDEN=1 writes it anew. Got:\n%s", path, got)
	}
}

// Every command says in one line what it does, what codes it ends with, and how it
// is used; no line is too long for a terminal.
func TestHelpIsComplete(t *testing.T) {
	streams, _, out, _ := term.Test()
	root := newRootCmd(newApp(Process{Streams: streams, Dir: t.TempDir()}))
	walk(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.HasSubCommands() {
			return
		}
		if cmd.Example == "" || !strings.Contains(cmd.Long, "Exit codes:") {
			t.Errorf("%s: no example or no exit codes", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(line)) > 85 {
				t.Errorf("%s: long line %q", cmd.CommandPath(), line)
			}
		}
	})
	out.Reset()
}
