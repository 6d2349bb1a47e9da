package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link/wire"
)

type execOptions struct {
	app *app

	run     string
	command []string
	dir     string
	env     []string
	noTTY   bool
}

func newExecCmd(a *app, runF func(context.Context, *execOptions) error) *cobra.Command {
	o := &execOptions{app: a}
	cmd := &cobra.Command{
		Use:   "exec RUN [-- COMMAND…]",
		Short: "Run a command in the sandbox of a live run",
		Long: `Runs COMMAND in the sandbox of a run, as the agent's user and in the directory
where the agent works. Where standard input and output are terminals it gets a
terminal of its own; there COMMAND may be left out, for a shell. The exit code
is that of COMMAND.

The run need not be one of this process, but must have a sandbox: it is going
on, or its sandbox was kept. RUN is an id, the beginning of one that no other
run has, or "latest".` + exits("n", "1", "2", "5", "130", "143"),
		Example: `  insightscli exec latest
  insightscli exec 3f9a -- git status --short`,
		Args:              takes(1, -1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{Live: true}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.fill(args)
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runExec(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows RUN belongs to COMMAND
	f.StringVarP(&o.dir, "workdir", "w", "", "run it in this `DIRECTORY` of the sandbox")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set `NAME=VALUE` in its environment; repeatable")
	f.BoolVar(&o.noTTY, "no-tty", false, "give it no terminal, even if there is one here")
	return cmd
}

// fill takes the run and the command; the -- between them may be left out.
func (o *execOptions) fill(args []string) {
	o.run, o.command = args[0], args[1:]
	if len(o.command) > 0 && o.command[0] == "--" {
		o.command = o.command[1:]
	}
}

func (o *execOptions) validate() error {
	if len(o.command) == 0 && !o.interactive() {
		return usageError("exec needs a COMMAND where there is no terminal")
	}
	for _, kv := range o.env {
		if kv == "" || kv[0] == '=' {
			return usageError("--env takes NAME=VALUE, got %q", kv)
		}
	}
	return nil
}

// interactive reports whether COMMAND gets a terminal.
func (o *execOptions) interactive() bool {
	return !o.noTTY && o.app.streams.InTTY && o.app.streams.OutTTY
}

func runExec(ctx context.Context, o *execOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	box, leave, err := s.enter(ctx, rec)
	if err != nil {
		return err
	}
	defer leave()
	code, err := o.execute(ctx, box, o.wire(s.config.Machine.Term))
	if err != nil && code <= 0 {
		return err
	}
	if err != nil {
		// It was not started: said in our words, with the code a shell gives.
		o.app.printError(errorObject{Message: oneLine(err.Error()), Hint: "see what there is: insightscli exec " + rec.Spec.Run.Short() + " -- ls"})
	}
	return exitWith(code)
}

// wire is the command as PID 1 is asked for it.
func (o *execOptions) wire(term string) wire.Command {
	c := wire.Command{Argv: o.command, Dir: o.dir, Env: o.env}
	if len(c.Argv) == 0 {
		c.Argv = []string{"/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"}
	}
	if o.interactive() {
		if term == "" {
			term = "xterm"
		}
		c.TTY, c.Env = true, append([]string{"TERM=" + term}, c.Env...)
	}
	return c
}

func (o *execOptions) execute(ctx context.Context, box agent.Remote, c wire.Command) (int, error) {
	st := o.app.streams
	if !c.TTY {
		in := st.In
		if st.InTTY {
			in = nil // nobody is asked to type for a command that has no terminal
		}
		return box.Exec(ctx, c, agent.Stdio{
			In: in, Out: o.app.clean(st.Out, st.OutTTY), Err: o.app.clean(st.Err, st.ErrTTY),
		})
	}
	tty, err := openTTY(st.In)
	if err != nil {
		return -1, err
	}
	defer tty.restore()
	c.Rows, c.Cols = tty.size()
	return box.Exec(ctx, c, agent.Stdio{In: st.In, Out: st.Out, Resize: tty.resized})
}
