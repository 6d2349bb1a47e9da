package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
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

	run       string
	follow    bool
	tail      int // lines; -1: all
	since     string
	kinds     []string
	json      bool
	raw       bool
	serverLog bool
	requests  bool
	plain     bool

	from time.Time // what since means
}

func newLogsCmd(a *app, runF func(context.Context, *logsOptions) error) *cobra.Command {
	o := &logsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Show what happened in a run",
		Long: `Shows the events of a run as they were shown when they happened: what the
command or the agent said on standard output, all the rest on standard error.
With -f it goes on until the run has finished; on a terminal that is the screen of
'insightscli tui', unless it is said how to print. RUN is an id, the beginning of
one that no other run has, or "latest".` + exits("0", "1", "2", "3", "5", "130", "143"),
		Example: `  insightscli logs -f latest
  insightscli logs 3f9a --raw > output.txt
  insightscli logs latest --json --kind step,finished --since 10m`,
		Args:              takes(1, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
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
	f.StringVar(&o.since, "since", "", "begin at this `TIME`: a duration before now (10m) or RFC 3339")
	f.StringSliceVar(&o.kinds, "kind", nil, "only events of this `KIND`: "+strings.Join(kindNames(), ", "))
	f.BoolVar(&o.json, "json", false, "print the stored lines, one JSON object an event")
	f.BoolVar(&o.raw, "raw", false, "print the bytes of the output as they were, and nothing else")
	f.BoolVar(&o.plain, "plain", false, "print lines, also where -f would show the run on the screen")
	f.BoolVar(&o.serverLog, "server-log", false, "print the agent server's own log instead")
	f.BoolVar(&o.requests, "requests", false, "print the log of the requests to models instead, which has no content of theirs")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func kindNames() []string {
	var names []string
	for _, k := range task.Kinds() {
		names = append(names, string(k))
	}
	return names
}

func (o *logsOptions) validate(now time.Time) error {
	for _, k := range o.kinds {
		if !slices.Contains(kindNames(), k) {
			return usageError("unknown kind %q; there are %s", k, strings.Join(kindNames(), ", "))
		}
	}
	switch {
	case o.json && o.raw:
		return usageError("--json and --raw exclude each other")
	case o.tail < -1:
		return usageError("--tail takes a number of lines, got %d", o.tail)
	case o.serverLog && o.requests:
		return usageError("--server-log and --requests exclude each other")
	case (o.serverLog || o.requests) && (o.follow || o.tail >= 0 || o.since != "" || len(o.kinds) > 0 || o.json):
		return usageError("--server-log and --requests print a whole log as it is: leave out -f, --tail, --since, --kind and --json")
	}
	if o.since == "" {
		return nil
	}
	if d, err := time.ParseDuration(o.since); err == nil && d >= 0 {
		o.from = now.Add(-d)
		return nil
	}
	t, err := time.Parse(time.RFC3339, o.since)
	if err != nil {
		return usageError("--since takes a duration (10m) or a time (2026-01-02T15:04:05Z), got %q", o.since)
	}
	o.from = t
	return nil
}

func runLogs(ctx context.Context, o *logsOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	switch {
	case o.serverLog:
		return o.printServerLog(ctx, s, rec)
	case o.requests:
		return copyLog(o.app.streams.Out, s.store.RequestLogPath(rec.Spec), errs.New("cli.logs", errs.NotFound,
			"insightscli show "+rec.Spec.Run.Short(), "run %s has made no request to a model", rec.Spec.Run.Short()))
	}
	if o.onScreen(s.config) {
		return o.app.show(ctx, s, tui.Options{Run: string(rec.Spec.Run)})
	}
	return o.print(ctx, s, rec)
}

// onScreen reports whether the run is shown on the screen: followed on a terminal, and
// nothing said about how it is printed.
func (o *logsOptions) onScreen(c config.Config) bool {
	asIs := o.json || o.raw || o.plain || o.tail >= 0 || o.since != "" || len(o.kinds) > 0
	return o.follow && !asIs && o.app.hasScreen(c)
}

// print shows the events of a run.
func (o *logsOptions) print(ctx context.Context, s *state, rec journal.Record) error {
	begin, err := o.begin(ctx, s.store, rec)
	if err != nil {
		return err
	}
	out, flush := o.output()
	show, end := o.printer(out)
	visit := func(line []byte, ev task.Event) error {
		if !o.wants(ev) {
			return nil
		}
		if ev.Seq == begin.after+1 {
			ev = begin.cut(ev)
		}
		return show(line, ev)
	}
	if o.follow {
		err = s.store.Tail(ctx, rec, begin.after, visit)
	} else {
		err = s.store.ReadLog(ctx, rec, begin.after, visit)
	}
	end()
	return errors.Join(err, flush())
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

// printer shows one event, and ends what the last one left open. The stored lines and the
// raw bytes go out untouched.
func (o *logsOptions) printer(out io.Writer) (show func(line []byte, ev task.Event) error, end func()) {
	if o.json {
		return func(line []byte, _ task.Event) error {
			_, err := out.Write(line)
			return err
		}, func() {}
	}
	st := o.app.streams
	screen := render.NewText(out, st.Err, render.Options{
		OutTTY: st.OutTTY, ErrTTY: st.ErrTTY, Color: st.Color, Dumb: st.Dumb, Every: len(o.kinds) > 0,
	})
	if o.raw {
		screen = render.NewText(out, st.Err, render.Options{Quiet: true, Raw: true})
	}
	return func(_ []byte, ev task.Event) error {
		if o.raw && ev.Kind != task.KindOutput {
			return nil
		}
		screen.Emit(ev)
		return screen.Err()
	}, screen.End
}

// wants reports whether an event is among those that were asked for.
func (o *logsOptions) wants(ev task.Event) bool {
	return !ev.At.Before(o.from) && (len(o.kinds) == 0 || slices.Contains(o.kinds, string(ev.Kind)))
}

// beginning is where --tail begins to print: after an event, with so many lines of
// the next one left out.
type beginning struct {
	after uint64
	skip  int
}

// counted is an event as --tail sees it.
type counted struct {
	seq   uint64
	lines int // that end in it
	mid   int // 1 if it begins inside a line, else 0
}

// begin finds the beginning of the last lines by reading the log once, keeping a few
// numbers an event.
func (o *logsOptions) begin(ctx context.Context, store *journal.Store, rec journal.Record) (beginning, error) {
	if o.tail < 0 {
		return beginning{}, nil
	}
	var last []counted
	var newest uint64
	sum, open := 0, map[task.Stream]bool{}
	err := store.ReadLog(ctx, rec, 0, func(_ []byte, ev task.Event) error {
		newest = ev.Seq
		if !o.wants(ev) {
			return nil
		}
		c := o.count(ev, open)
		last, sum = append(last, c), sum+c.lines
		for len(last) > 1 && sum-last[0].lines >= o.tail+last[1].mid {
			sum -= last[0].lines
			last = last[1:]
		}
		return nil
	})
	// Damaged lines are told once, by the reading that prints.
	if errs.KindOf(err) == errs.Incomplete {
		err = nil
	}
	if len(last) == 0 || o.tail == 0 {
		return beginning{after: newest}, err
	}
	b := beginning{after: last[0].seq - 1}
	if !o.json {
		b.skip = max(0, sum-o.tail)
	}
	return b, err
}

// count tells how many lines an event takes on a screen; a stored line is one. open
// remembers which streams stand inside a line.
func (o *logsOptions) count(ev task.Event, open map[task.Stream]bool) counted {
	c := counted{seq: ev.Seq, lines: 1}
	switch {
	case o.json:
		return c
	case ev.Kind != task.KindOutput && o.raw:
		c.lines = 0
	}
	out, err := ev.Output()
	if err != nil || ev.Kind != task.KindOutput {
		return c
	}
	if out.ExitCode != nil { // nothing is shown of it
		c.lines = 0
		return c
	}
	stream, _, _ := out.Bytes() // what cannot be decoded is not shown either
	if c.lines = out.Lines; !out.Continued {
		c.lines = max(c.lines, 1)
	}
	if open[stream] {
		c.mid = 1
	}
	open[stream] = out.Continued
	return c
}

// cut leaves out the first lines of an output event.
func (b beginning) cut(ev task.Event) task.Event {
	if b.skip == 0 || ev.Kind != task.KindOutput {
		return ev
	}
	out, err := ev.Output()
	if err != nil {
		return ev
	}
	stream, data, err := out.Bytes()
	if err != nil {
		return ev
	}
	for range b.skip {
		data = data[slices.Index(data, '\n')+1:]
	}
	ev.Params = task.AppendOutput(nil, stream, data, out.Continued)
	return ev
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
