package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/tui"
)

type logsOptions struct {
	app *app

	runs      []string
	follow    bool
	tail      int // lines; -1: all
	chosen    chosenEvents
	json      bool
	raw       bool
	serverLog bool
	requests  bool
	plain     bool
}

func newLogsCmd(a *app, runF func(context.Context, *logsOptions) error) *cobra.Command {
	o := &logsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "logs RUN…",
		Short: "Show what happened in a run",
		Long: `Shows the events of a run as they were shown when they happened: what the
command or the agent said on standard output, all the rest on standard error.
With -f it goes on until the run has finished; on a terminal that is the screen of
'insightscli tui', unless it is said how to print. RUN is an id, the beginning of
one that no other run has, or "latest". Of several runs every line begins with the
id of its own, and every object of --json with its whole id.

Of what is asked for by --kind, --tool, --severity, --since, --until and --grep an
event must meet all. --grep looks at lines as they are shown, also of --json.` + exits("0", "1", "2", "3", "5", "130", "143"),
		Example: `  insightscli logs -f latest
  insightscli logs 3f9a --raw > output.txt
  insightscli logs latest --json --kind step,finished --since 10m
  insightscli logs -f 3f9a 77c0 --severity warn
  insightscli logs latest --tool execute --grep 'go (test|vet)'`,
		Args:              takes(1, -1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := o.validate(time.Now()); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runLogs(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the run has finished")
	f.IntVar(&o.tail, "tail", -1, "begin with the last `N` lines; -1 is all")
	o.chosen.bind(cmd)
	cmd.AddCommand(newLogsExportCmd(a, nil))
	f.BoolVar(&o.json, "json", false, "print the stored lines, one JSON object an event")
	f.BoolVar(&o.raw, "raw", false, "print the bytes of the output as they were, and nothing else")
	f.BoolVar(&o.plain, "plain", false, "print lines, also where -f would show the run on the screen")
	f.BoolVar(&o.serverLog, "server-log", false, "print the agent server's own log instead")
	f.BoolVar(&o.requests, "requests", false, "print the log of the requests to models instead, which has no content of theirs")
	return cmd
}

func (o *logsOptions) validate(now time.Time) error {
	whole := o.serverLog || o.requests
	switch {
	case o.json && o.raw:
		return usageError("--json and --raw exclude each other")
	case o.tail < -1:
		return usageError("--tail takes a number of lines, got %d", o.tail)
	case o.serverLog && o.requests:
		return usageError("--server-log and --requests exclude each other")
	case whole && (o.follow || o.tail >= 0 || o.chosen.any() || o.json):
		return usageError("--server-log and --requests print a whole log as it is: leave out -f, --tail, --json and what chooses events")
	case len(o.runs) > 1 && (whole || o.raw):
		return usageError("--raw, --server-log and --requests are for one run")
	}
	return o.chosen.parse(now)
}

func runLogs(ctx context.Context, o *logsOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	recs, err := s.find(ctx, o.runs...)
	if err != nil {
		return err
	}
	recs = distinct(recs)
	rec := recs[0]
	switch {
	case len(recs) > 1:
		return o.printAll(ctx, s, recs)
	case o.serverLog:
		return o.printServerLog(ctx, s, rec)
	case o.requests:
		return copyLog(o.app.streams.Out, s.store.RequestLogPath(rec.Spec), errs.New("cli.logs", errs.NotFound,
			"insightscli show "+rec.Spec.Run.Short(), "run %s has made no request to a model", rec.Spec.Run.Short()))
	case o.onScreen(s.config):
		return o.app.show(ctx, s, tui.Options{Run: string(rec.Spec.Run)})
	}
	return o.print(ctx, s, rec)
}

// onScreen reports whether the run is shown on the screen: followed on a terminal, and
// nothing said about how it is printed.
func (o *logsOptions) onScreen(c config.Config) bool {
	asIs := o.json || o.raw || o.plain || o.tail >= 0 || o.chosen.any()
	return o.follow && !asIs && o.app.hasScreen(c)
}

// print shows the events of a run.
func (o *logsOptions) print(ctx context.Context, s *state, rec journal.Record) error {
	out, flush := o.output()
	p := o.printer(s, rec, logStreams{out: out, err: o.app.streams.Err})
	if o.json && !o.follow && !o.chosen.any() {
		begin, err := p.begin(ctx)
		if err != nil {
			return err
		}
		return errors.Join(s.store.CopyLog(ctx, rec, begin.after, out), flush())
	}
	return errors.Join(p.print(ctx), flush())
}

// output is where the data goes: through a buffer if nobody watches it come.
func (o *logsOptions) output() (io.Writer, func() error) {
	st := o.app.streams
	if o.follow || st.OutTTY {
		return st.Out, func() error { return nil }
	}
	w := bufio.NewWriterSize(st.Out, 64<<10)
	return w, w.Flush
}

// printServerLog prints the log of PID 1: from the sandbox while there is one, else
// the copy that was kept when the run failed.
func (o *logsOptions) printServerLog(ctx context.Context, s *state, rec journal.Record) error {
	st := o.app.streams
	out := o.app.clean(st.Out, st.OutTTY && !o.raw)
	if rec.State.Terminal() && !kept(rec) {
		return copyLog(out, s.store.ServerLogPath(rec.Spec), errs.New("cli.logs", errs.NotFound, "insightscli logs "+rec.Spec.Run.Short(),
			"the agent server's log of run %s was not kept: it is, when a run fails", rec.Spec.Run.Short()))
	}
	box, leave, err := s.enter(ctx, rec)
	if err != nil {
		return err
	}
	defer leave()
	code, err := box.Exec(ctx, wire.Command{Argv: []string{"cat", wire.ServerLog}, Dir: "/"}, agent.Stdio{Out: out})
	if err == nil && code != 0 {
		err = errs.New("cli.logs", errs.NotFound, "", "the agent server's log cannot be read in the sandbox")
	}
	return err
}

// copyLog copies a file, or returns missing where there is none.
func copyLog(w io.Writer, path string, missing error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return missing
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	_, err = io.Copy(w, f)
	return err
}

// clean returns w for bytes that a sandbox made: where a terminal shows them, what
// could steer it is taken out.
func (a *app) clean(w io.Writer, tty bool) io.Writer {
	if !tty {
		return w
	}
	return &outputWriter{render.NewText(w, w, render.Options{
		OutTTY: true, Color: a.streams.Color, Dumb: a.streams.Dumb, Quiet: true,
	})}
}

// outputWriter shows bytes as the output of a command.
type outputWriter struct{ screen *render.Text }

// Write implements io.Writer.
func (w *outputWriter) Write(b []byte) (int, error) {
	w.screen.Emit(task.Event{Kind: task.KindOutput, Params: task.AppendOutput(nil, task.Stdout, b, true)})
	return len(b), w.screen.Err()
}
