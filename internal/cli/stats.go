package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/stats"
)

type statsOptions struct {
	app *app

	by    string
	since string
	json  bool

	from time.Time // what since means
}

func newStatsCmd(a *app, runF func(context.Context, *statsOptions) error) *cobra.Command {
	o := &statsOptions{app: a}
	var ways []string
	for _, by := range stats.All() {
		ways = append(ways, string(by))
	}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Sum up runs: how many, how they ended, how long they took, what they cost",
		Long: `Sums up the runs that are recorded on this machine by day, agent, repository or
provider. OK is the share of the completed among those that completed or failed; the
times are of the same runs, from their start to their end: half of them, and nine in
ten, took no longer. A run with several repositories counts in each. The cost leaves
out requests to models of unknown price, which a + behind it marks.

In a terminal some columns make room for a bar: how many runs there were.` + exits("0", "1", "2", "5"),
		Example: `  insightscli stats --since 168h
  insightscli stats --by repo
  insightscli stats --by agent --json | jq '.groups[] | {name, success_rate}'`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !slices.Contains(ways, o.by) {
				return usageError("runs are summed up by %s, not by %q", strings.Join(ways, ", "), o.by)
			}
			if o.from, err = timeOf("--since", o.since, time.Now()); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runStats(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.by, "by", ways[0], "sum up by `WHAT`: "+strings.Join(ways, ", "))
	cmd.Flags().StringVar(&o.since, "since", "", "only runs made since this `TIME`: a duration before now (168h), RFC 3339, or a date of here")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(ways, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runStats(ctx context.Context, o *statsOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	rep, err := stats.Read(ctx, s.db.DB, stats.Query{By: stats.By(o.by), Since: o.from, Zone: time.Local})
	if err != nil {
		return err
	}
	st := o.app.streams
	switch {
	case o.json:
		return writeJSON(st.Out, rep)
	case rep.Total.Runs == 0:
		fmt.Fprintln(st.Err, "there are no runs to sum up")
		return nil
	case st.OutTTY:
		return statsChart(st.Out, rep, st.Width, st.Dumb)
	}
	return statsTable(st.Out, rep)
}

// statsTable prints a line a group: all there is to know.
func statsTable(out io.Writer, rep stats.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tRUNS\tOK\tFAILED\tCANCELLED\tLIVE\tMEDIAN\tP90\tTOKENS\tCOST\n", strings.ToUpper(string(rep.By)))
	for _, g := range append(slices.Clone(rep.Groups), rep.Total) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", cell(g.Name, 0), g.Runs, successText(g), g.Failed, g.Cancelled,
			g.Live, tookText(g.Median), tookText(g.P90), thousands(g.Used.Total), costText(g))
	}
	return w.Flush()
}

func successText(g stats.Group) string {
	if g.Success == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", *g.Success*100)
}

func tookText(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return render.Took(time.Duration(seconds * float64(time.Second)))
}

// costText is what a group cost, with a plus where a price is not known.
func costText(g stats.Group) string {
	plus := ""
	if g.Used.Unpriced > 0 {
		plus = "+"
	}
	switch {
	case g.Used.Requests == 0:
		return "-"
	case g.Used.CostUSD > 0 && g.Used.CostUSD < 0.01:
		return fmt.Sprintf("$%.4f%s", g.Used.CostUSD, plus)
	}
	return fmt.Sprintf("$%.2f%s", g.Used.CostUSD, plus)
}

// thousands is a number in few characters.
func thousands(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
