package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/journal"
)

type stopOptions struct {
	app *app

	cancel  bool
	timeout time.Duration
}

func newStopCmd(a *app, runF func(context.Context, *stopOptions) error) *cobra.Command {
	o := &stopOptions{app: a}
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "End the background runner",
		Long: `Ends the background runner and returns when it is gone. It is refused while the
runner has runs to carry out, unless --cancel ends those first.` + exits("0", "1", "2", "3", "5", "8", "130", "143"),
		Example: `  insightscli stop
  insightscli stop --cancel`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runStop(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.cancel, "cancel", false, "cancel the runner's runs first")
	cmd.Flags().DurationVar(&o.timeout, "timeout", cancelBound, "with --cancel: wait this long for the runs to end")
	return cmd
}

func runStop(ctx context.Context, o *stopOptions) error {
	s, err := o.app.openRunnerState(ctx)
	if err != nil {
		return err
	}
	st, err := s.background.Status(ctx)
	if errors.Is(err, background.ErrAbsent) {
		fmt.Fprintln(o.app.streams.Err, "no background runner is at work")
		return nil
	}
	if err != nil {
		return err
	}
	if o.cancel {
		var recs []journal.Record
		for _, run := range st.Runs {
			rec, err := s.store.Run(ctx, run)
			if err == nil && !rec.State.Terminal() {
				err = s.cancel(ctx, rec)
			}
			if err != nil {
				return err
			}
			recs = append(recs, rec)
		}
		if err := o.app.awaitCancelled(ctx, s, recs, o.timeout); err != nil {
			return err
		}
	}
	if err := s.stopRunner(ctx); err != nil && !errors.Is(err, background.ErrAbsent) {
		return err
	}
	fmt.Fprintln(o.app.streams.Err, "the background runner has ended")
	return nil
}

// stopRunner ends the runner. The end of its last run is recorded a moment before
// the runner knows of it.
func (s *state) stopRunner(ctx context.Context) error {
	deadline := time.Now().Add(adoptPause)
	for {
		err := s.background.Stop(ctx)
		if err == nil || errors.Is(err, background.ErrAbsent) || time.Now().After(deadline) {
			return err
		}
		live, lookErr := s.store.Runs(ctx, journal.Filter{Live: true})
		if lookErr != nil || len(live) > 0 {
			return err
		}
		if err := pause(ctx, enterPause); err != nil {
			return err
		}
	}
}
