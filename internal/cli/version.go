package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/build"
)

type versionOptions struct {
	app *app

	json bool
}

func newVersionCmd(a *app) *cobra.Command {
	o := &versionOptions{app: a}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show which build this is",
		Long:  "Shows version, commit, Go version and platform of this build." + exits("0", "2"),
		Example: `  insightscli version
  insightscli version --json`,
		Args: takes(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return runVersion(o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func runVersion(o *versionOptions) error {
	info := build.Get()
	if o.json {
		return json.NewEncoder(o.app.streams.Out).Encode(info)
	}
	line := "insightscli " + info.Version
	if info.Commit != "" {
		line += fmt.Sprintf(" (%.12s, %s)", info.Commit, info.Date)
	}
	_, err := fmt.Fprintf(o.app.streams.Out, "%s %s %s\n", line, info.Go, info.Platform)
	return err
}
