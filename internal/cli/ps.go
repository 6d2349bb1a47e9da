package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/journal"
)

type psOptions struct {
	app *app

	all  bool
	json bool
}

func newPsCmd(a *app, runF func(context.Context, *psOptions) error) *cobra.Command {
	o := &psOptions{app: a}
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List runs",
		Long: `Lists the runs that are not over, the newest first, with who carries them out: a
process of this machine, a foreign one (of another machine, which is left alone)
or nobody, which the background runner changes at once.` + exits("0", "1", "2", "5"),
		Example: `  insightscli ps
  insightscli ps -a --json | jq -r '.[] | select(.state == "failed") | .run'`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runPs(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "list the runs that are over, too")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

func runPs(ctx context.Context, o *psOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	recs, err := s.store.Runs(ctx, journal.Filter{Live: !o.all})
	if err != nil {
		return err
	}
	list := make([]runObject, 0, len(recs))
	for _, rec := range recs {
		list = append(list, s.object(rec))
	}
	if o.json {
		return writeJSON(o.app.streams.Out, list)
	}
	if len(list) == 0 {
		o.sayNone()
		return nil
	}
	return o.table(list, time.Now())
}

func (o *psOptions) sayNone() {
	if o.all {
		fmt.Fprintln(o.app.streams.Err, "there are no runs yet")
		return
	}
	fmt.Fprintln(o.app.streams.Err, "no run is going on; insightscli ps -a lists those that are over")
}

// table prints the runs. On a terminal long titles are cut, in a pipe nothing is.
func (o *psOptions) table(list []runObject, now time.Time) error {
	width := 0
	if o.app.streams.OutTTY {
		width = max(16, o.app.streams.Width/4)
	}
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATE\tTITLE\tAGENT\tREPO\tAGE\tPROVIDER\tOWNER")
	for _, r := range list {
		who := ""
		if r.Owner != nil {
			who = r.Owner.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Run.Short(), r.State, cell(r.Title, width),
			cell(r.Agent, width), cell(strings.Join(r.Repos, " "), width), age(now.Sub(r.Created)), cell(r.Provider, 0), cell(who, 0))
	}
	return w.Flush()
}
