package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/setup"
)

// printSetup prints what became of steps, and returns an error if one was left.
func (a *app) printSetup(results []setup.Result, asJSON bool) error {
	undone := setup.Undone(results)
	if asJSON {
		err := writeJSON(a.streams.Out, struct {
			Steps  []setup.Result `json:"steps"`
			Undone bool           `json:"undone"`
		}{results, undone != nil})
		if err != nil {
			return err
		}
		return undone
	}
	for _, r := range results {
		printDiff(a.streams.Out, r.Diff)
	}
	w := tabwriter.NewWriter(a.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "STEP\tOUTCOME\tWHAT\n")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Step, r.Outcome, cell(r.Text, 0))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Hint != "" && r.Outcome != setup.ToDo {
			fmt.Fprintf(a.streams.Err, "%s: %s\n", r.Step, oneLine(r.Hint))
		}
	}
	return undone
}

// printDiff prints how a file would change, without what a terminal would obey.
func printDiff(w io.Writer, diff string) {
	for line := range strings.Lines(diff) {
		fmt.Fprintln(w, render.Clean(strings.TrimRight(line, "\r\n")))
	}
}
