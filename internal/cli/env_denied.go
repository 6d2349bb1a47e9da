package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
)

type envDeniedOptions struct {
	app *app

	run  string
	json bool
}

func newEnvDeniedCmd(a *app, runF func(context.Context, *envDeniedOptions) error) *cobra.Command {
	o := &envDeniedOptions{app: a}
	cmd := &cobra.Command{
		Use:   "denied RUN",
		Short: "List the connections of a run that were refused",
		Long: `Lists what the network policy refused to a run: host, port, how often, why, and
the rule that would allow it. RUN is an id, the beginning of one, or "latest".` + exits("0", "1", "2", "5"),
		Example:           `  insightscli env denied latest`,
		Args:              takes(1, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvDenied(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

func runEnvDenied(ctx context.Context, o *envDeniedOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	denied := []task.Denied{}
	err = s.store.ReadLog(ctx, rec, 0, func(_ []byte, ev task.Event) error {
		if ev.Kind == task.KindDenied {
			var d task.Denied
			if json.Unmarshal(ev.Params, &d) == nil { // else of another version
				denied = task.AddDenied(denied, d)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(denied, func(x, y task.Denied) int { return y.Count - x.Count })
	if o.json {
		return writeJSON(o.app.streams.Out, denied)
	}
	if len(denied) == 0 {
		fmt.Fprintln(o.app.streams.Err, "nothing was refused")
		return nil
	}
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "HOST\tPORT\tCOUNT\tREASON\tALLOWED BY\n")
	for _, d := range denied {
		port := "-"
		if d.Port > 0 {
			port = fmt.Sprint(d.Port)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", cell(d.Host, 0), port, d.Count, cell(d.Reason, 80), cell(d.Rule, 0))
	}
	return w.Flush()
}
