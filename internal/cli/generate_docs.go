package cli

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/Insights/insightscli/internal/build"
)

// newGenerateDocsCmd is for releases: hidden, because users have `completion`.
func newGenerateDocsCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "generate-docs DIR",
		Short:   "Write completions and man pages for a release",
		Long:    "Writes DIR/completions and DIR/man." + exits("0", "1", "2"),
		Example: "  insightscli generate-docs dist",
		Hidden:  true,
		Args:    takes(1, 1, "a directory"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runGenerateDocs(cmd.Root(), args[0]) },
	}
}

func runGenerateDocs(root *cobra.Command, dir string) error {
	completions, man := filepath.Join(dir, "completions"), filepath.Join(dir, "man")
	if err := errors.Join(os.MkdirAll(completions, 0o755), os.MkdirAll(man, 0o755)); err != nil {
		return err
	}
	suffix := map[string]string{"powershell": "ps1"}
	for _, shell := range shells() {
		ext := shell
		if s := suffix[shell]; s != "" {
			ext = s
		}
		f, err := os.Create(filepath.Join(completions, "insightscli."+ext))
		if err != nil {
			return err
		}
		if err := errors.Join(runCompletion(root, shell, f), f.Close()); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true
	// The date of the commit, so that building twice gives the same bytes.
	date, err := time.Parse(time.RFC3339, build.Get().Date)
	if err != nil {
		date = time.Unix(0, 0).UTC()
	}
	return doc.GenManTree(root, &doc.GenManHeader{Title: "INSIGHTSCLI", Section: "1", Source: "insightscli", Date: &date}, man)
}
