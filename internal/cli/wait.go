package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

type waitOptions struct {
	app *app

	runs    []string
	timeout time.Duration
	json    bool
}

func newWaitCmd(a *app, runF func(context.Context, *waitOptions) error) *cobra.Command {
	o := &waitOptions{app: a}
	cmd := &cobra.Command{
		Use:   "wait [RUN…]",
		Short: "Wait for the end of runs, or for the background runner",
		Long: `Waits until every RUN is over and ends with the exit code that the run itself
has: of several runs with the first that is not 0. Without a RUN it waits until
a background runner is ready to take runs. RUN is an id, the beginning of one
that no other run has, or "latest".` + exits("0", "1", "2", "3", "4", "5", "7", "8", "124", "130", "143"),
		Example: `  insightscli wait latest
  insightscli wait --timeout 10m 3f9a 77c0 --json`,
		ValidArgsFunction: a.completeRuns(journal.Filter{Live: true}, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if o.timeout < 0 {
				return usageError("--timeout is negative")
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runWait(cmd.Context(), o)
		},
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after this long, with exit code 8; 0 never does")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the results, one JSON object a run, or the runner's status")
	return cmd
}

func runWait(ctx context.Context, o *waitOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	if len(o.runs) == 0 {
		return o.waitForRunner(ctx, s)
	}
	recs, err := s.find(ctx, o.runs...)
	if err != nil {
		return err
	}
	for _, rec := range recs {
		if !rec.State.Terminal() && s.ownerOf(rec).State == ownerWaiting {
			return errs.New("cli.wait", errs.Conflict, "insightscli run --start "+rec.Spec.Run.Short(),
				"run %s was not started yet", rec.Spec.Run.Short())
		}
	}
	ctx, cancel := within(ctx, o.timeout, "insightscli ps", "still going on after %s", o.timeout)
	defer cancel()
	code := 0
	for _, rec := range recs {
		rec, err := s.await(ctx, rec.Spec.Run)
		if err != nil {
			return err
		}
		if err := o.told(rec); err != nil {
			return err
		}
		if code == 0 && rec.Result != nil {
			code = rec.Result.Code
		}
	}
	return exitWith(code)
}

// told says how a run ended.
func (o *waitOptions) told(rec journal.Record) error {
	r := task.Result{Run: rec.Spec.Run, Task: rec.Spec.Task, State: rec.State}
	if rec.Result != nil {
		r = *rec.Result
	}
	if o.json {
		return json.NewEncoder(o.app.streams.Out).Encode(r)
	}
	for _, line := range render.Final(r) {
		fmt.Fprintln(o.app.streams.Err, render.Clean(line))
	}
	return nil
}

func (o *waitOptions) waitForRunner(ctx context.Context, s *state) error {
	ctx, cancel := within(ctx, o.timeout, "insightscli start -d", "no background runner after %s", o.timeout)
	defer cancel()
	for {
		st, err := s.background.Status(ctx)
		switch {
		case err == nil && o.json:
			return writeJSON(o.app.streams.Out, st)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || !errors.Is(err, background.ErrAbsent):
			return err
		}
		if err := pause(ctx, enterPause); err != nil {
			return err
		}
	}
}
