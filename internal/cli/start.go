package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/task"
)

type startOptions struct {
	app *app

	detach  bool
	serve   string
	idleEnd time.Duration
}

func newStartCmd(a *app, runF func(context.Context, *startOptions) error) *cobra.Command {
	o := &startOptions{app: a}
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start the background runner",
		Long: `Starts the runner that carries out detached runs and goes on with runs whose own
process died. There is one per state directory. It stays until 'insightscli
stop'; ended by a signal it lets go of its runs, which the next runner goes on
with.

'insightscli run -d' starts a runner by itself, one that ends when it has
nothing to do, so this command is never needed. With -d such a runner, if one is
at work, becomes one that stays.
With --serve it also opens the gateway to models (127.0.0.1:3308) and the MCP
servers (127.0.0.1:8787) to clients outside of sandboxes that hold the token of
a live run.` + exits("0", "1", "2", "5", "130", "143"),
		Example: `  insightscli start -d
  insightscli start`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.detach && o.idleEnd > 0 {
				return usageError("--detach starts a runner that stays: leave out --idle-end")
			}
			if _, err := parseServe(o.serve); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			if o.detach {
				return startDetached(cmd.Context(), o)
			}
			return runStartForeground(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVarP(&o.detach, "detach", "d", false, "start it as a process of its own; return when it is ready")
	cmd.Flags().StringVar(&o.serve, "serve", "", "open `SERVICES` on TCP: llm, mcp or both, comma-separated")
	cmd.Flags().DurationVar(&o.idleEnd, "idle-end", 0, "end after so long without a run")
	_ = cmd.Flags().MarkHidden("idle-end") // how commands start a runner that ends itself
	return cmd
}

// openRunnerState opens the state directory without adopting: the runner itself is
// what adopts.
func (a *app) openRunnerState(ctx context.Context) (*state, error) {
	c, err := a.config(nil)
	if err != nil {
		return nil, err
	}
	return a.openState(ctx, c)
}

func startDetached(ctx context.Context, o *startOptions) error {
	s, err := o.app.openRunnerState(ctx)
	if err != nil {
		return err
	}
	if o.serve != "" {
		if st, err := s.background.Status(ctx); err == nil {
			return errs.New("cli.start", errs.Conflict, "insightscli stop; insightscli start -d --serve "+o.serve,
				"the background runner, process %d, is at work already, and what it serves was decided when it started", st.PID)
		}
	}
	before := logSize(s.dir)
	client := s.background
	client.Start = func(context.Context) error {
		if o.serve != "" {
			return spawnRunner(s.dir, o.app.process.Environ, "--serve", o.serve)
		}
		return spawnRunner(s.dir, o.app.process.Environ)
	}
	if err := client.Stay(ctx); err != nil {
		if last := lastLogLine(s.dir, before); last != "" {
			return fmt.Errorf("%w: %s", err, last)
		}
		return err
	}
	st, err := s.background.Status(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Err, "the background runner is ready, process %d\n", st.PID)
	return nil
}

func logSize(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, runnerLog))
	if err != nil {
		return 0
	}
	return info.Size()
}

// lastLogLine returns the last line that a runner which did not come up wrote.
func lastLogLine(dir string, from int64) string {
	f, err := os.Open(filepath.Join(dir, runnerLog))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // read only
	if _, err := f.Seek(from, 0); err != nil {
		return ""
	}
	last := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line, ok := strings.CutPrefix(lines.Text(), "error: "); ok {
			last = line
		}
	}
	return last
}

// graceHere is how long telemetry of a run that is over may take in the background runner,
// where nobody waits for it.
const graceHere = 2 * time.Second

// runStartForeground is the background runner. A signal ends it and not its runs.
func runStartForeground(ctx context.Context, o *startOptions) (err error) {
	s, err := o.app.openRunnerState(ctx)
	if err != nil {
		return err
	}
	p, err := s.newProcess(ctx, o.app.process.Force)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.owner.Release()) }()
	p.services.mirrorTo, p.services.grace = o.app.streams.Err, graceHere

	list, err := parseServe(o.serve)
	if err != nil {
		return err
	}
	closeTCP, err := p.services.serveTCP(ctx, list, o.log)
	if err != nil {
		return err
	}
	defer closeTCP()
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(runner.ErrAbandoned) })()
	var telling sync.WaitGroup
	defer telling.Wait()
	telling.Go(func() { p.services.tellLeft(work) })
	defer cancel(nil) // before the wait
	err = background.Serve(work, background.Config{
		Dir: s.dir, Version: build.Get().Version, Store: s.store, Owner: p.owner, Executor: p.runner,
		Handlers: p.handlers(), Idle: o.idleEnd, Report: o.report,
	}, func() { o.log("ready, process %d", p.owner.PID) })
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// report tells what went wrong with a run beyond its own result.
func (o *startOptions) report(run task.ID, err error) {
	if run == "" {
		o.log("%s", oneLine(err.Error()))
		return
	}
	o.log("run %s: %s", run.Short(), oneLine(err.Error()))
}

// log writes a line to standard error, which is a file for a detached runner.
func (o *startOptions) log(format string, args ...any) {
	fmt.Fprintf(o.app.streams.Err, "%s background runner: %s\n",
		time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
