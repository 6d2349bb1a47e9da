// Program docsgen writes the completions and man pages that a release carries:
//
//	go run ./internal/cli/docsgen DIR [DATE]
//
// It is a program of its own, so that the Markdown renderer which cobra makes man
// pages with is not a part of the product. DATE (RFC 3339, of the commit) is in the
// man pages; without one it is the beginning of 1970, so that the same tree always
// gives the same bytes.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/Insights/insightscli/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	date := time.Unix(0, 0).UTC()
	switch {
	case len(args) == 0 || len(args) > 2:
		return errors.New("give a directory, and the date of the commit")
	case len(args) == 2:
		given, err := time.Parse(time.RFC3339, args[1])
		if err != nil {
			return err
		}
		date = given.UTC()
	}
	root := cli.Tree()
	if err := writeCompletions(root, filepath.Join(args[0], "completions")); err != nil {
		return err
	}
	return writeManPages(root, filepath.Join(args[0], "man"), date)
}

func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := func(ext string) string { return filepath.Join(dir, root.Name()+"."+ext) }
	return errors.Join(
		root.GenBashCompletionFileV2(name("bash"), true),
		root.GenZshCompletionFile(name("zsh")),
		root.GenFishCompletionFile(name("fish"), true),
		root.GenPowerShellCompletionFileWithDesc(name("ps1")),
	)
}

func writeManPages(root *cobra.Command, dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Title: "INSIGHTSCLI", Section: "1", Source: root.Name(), Date: &date}, dir)
}
