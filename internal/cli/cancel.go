package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/task"
)

// cancelBound is how long a cancelled run may take to end: its agent has ten
// seconds, its changes are taken out, and its sandbox is removed.
const cancelBound = 2 * time.Minute

type cancelOptions struct {
	app *app

	runs    []string
	noWait  bool
	timeout time.Duration
}

func newCancelCmd(a *app, runF func(context.Context, *cancelOptions) error) *cobra.Command {
	o := &cancelOptions{app: a}
	cmd := &cobra.Command{
		Use:   "cancel RUN…",
		Short: "End runs before they are done",
		Long: `Ends runs in order: the agent is stopped, its changes so far are taken out and
the sandbox is removed. The wish is recorded first, so that it is carried out
even if the process of the run dies meanwhile. A run that is over stays as it
is. RUN is an id, the beginning of one that no other run has, or "latest".` + exits("0", "1", "2", "5", "8", "130", "143"),
		Example: `  insightscli cancel latest
  insightscli cancel --no-wait 3f9a`,
		Args:              takes(1, -1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{Live: true}, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runCancel(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait for the end")
	cmd.Flags().DurationVar(&o.timeout, "timeout", cancelBound, "wait this long, then end with exit code 8; 0 waits for ever")
	return cmd
}

func runCancel(ctx context.Context, o *cancelOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	recs, err := s.find(ctx, o.runs...)
	if err != nil {
		return err
	}
	for _, rec := range recs {
		if rec.State.Terminal() {
			fmt.Fprintf(o.app.streams.Err, "run %s is over already (%s)\n", rec.Spec.Run.Short(), rec.State)
		} else if err := s.cancel(ctx, rec); err != nil {
			return err
		}
	}
	if o.noWait {
		return nil
	}
	return o.app.awaitCancelled(ctx, s, recs, o.timeout)
}

// awaitCancelled waits for the end of those runs that were live, and tells it.
func (a *app) awaitCancelled(ctx context.Context, s *state, recs []journal.Record, bound time.Duration) error {
	ctx, cancel := within(ctx, bound, "insightscli ps", "cancelled, and still being cleaned up after %s", bound)
	defer cancel()
	for _, rec := range recs {
		if rec.State.Terminal() {
			continue
		}
		rec, err := s.await(ctx, rec.Spec.Run)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.streams.Err, "run %s is over (%s)\n", rec.Spec.Run.Short(), rec.State)
	}
	return nil
}

// cancel records the wish to end a run, and sees to it that somebody carries it out.
// A run that nobody has begun is ended here and now; should this process die within
// that, whoever goes on with the run knows the wish.
func (s *state) cancel(ctx context.Context, rec journal.Record) error {
	_, err := s.store.AddInput(ctx, rec.Spec.Run, task.Input{ID: string(task.NewID()), Kind: task.InputCancel})
	if errs.KindOf(err) == errs.Conflict {
		return nil // it ended meanwhile
	}
	if err != nil {
		return err
	}
	if rec.Owner == "" && rec.Started.IsZero() {
		if done, err := s.cancelQueued(ctx, rec); err != nil || done {
			return err
		}
	}
	return s.knockFor(ctx, rec)
}

// cancelQueued ends a run that nobody has begun, as its owner: the background
// runner, which may want it at the same moment, then leaves it alone, or was faster.
func (s *state) cancelQueued(ctx context.Context, rec journal.Record) (done bool, err error) {
	me, err := owner.Acquire(ctx, s.dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, me.Release()) }()
	run := rec.Spec.Run
	if ok, err := s.store.Claim(ctx, run, "", me.ID); err != nil || !ok {
		return false, err
	}
	now := time.Now().UTC()
	res := task.Result{
		Run: run, Task: rec.Spec.Task, State: task.StateCancelled, Provider: rec.Spec.Provider,
		Code: errs.Canceled.Code(), Kind: string(errs.Canceled), Error: "the run was cancelled", Started: now, Finished: now,
	}
	// Once claimed it is ended, whatever becomes of this process's patience.
	ctx = context.WithoutCancel(ctx)
	if err := s.logEnd(ctx, rec, res); err != nil {
		return false, err
	}
	return true, s.store.Finish(ctx, run, res)
}

// logEnd writes the finished event of a run.
func (s *state) logEnd(ctx context.Context, rec journal.Record, res task.Result) (err error) {
	log, err := s.store.OpenLog(ctx, rec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	params, err := json.Marshal(res)
	if err != nil {
		return err
	}
	seq, _ := log.Last()
	ev := task.Event{Run: res.Run, Seq: seq + 1, At: res.Finished, Kind: task.KindFinished, Params: params}
	if err := log.Append(ev); err != nil {
		return err
	}
	return log.Sync()
}
