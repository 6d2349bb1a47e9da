package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// executor carries out one run and returns when its last event was emitted.
type executor interface {
	Run(ctx context.Context, spec task.Spec, secrets map[string]secret.String, inbox <-chan task.Input, sink task.Sink) (task.Result, error)
}

type runOptions struct {
	app *app

	prompt  string
	command []string

	// settings are the flags given on the command line that override a setting: the
	// setting's name → its text.
	settings map[string]string

	agent          string
	repos          []string
	branch         string
	title          string
	originProduct  string
	createPR       bool
	createPRGiven  bool
	mode           string
	environment    string
	image          string
	allow          []string
	includeDefault bool
	envVars        []string
	secrets        []string
	schema         string
	session        bool // the run stays open for further turns; set by `session start`
	mount          bool
	uncommitted    bool
	fullHistory    bool
	trustMount     bool
	keep           bool
	publishAgent   string
	exitCode       bool
	noStart        bool
	start          string
	detach         bool
	json           bool
	quiet          bool
	dryRun         bool
}

func newRunCmd(a *app, runF func(context.Context, *runOptions) error) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run [PROMPT] [flags] [-- COMMAND…]",
		Short: "Run a task in a new sandbox and show what happens",
		Long: `Creates a task and a run, makes a sandbox, brings the repositories into it, lets an
agent work there, takes the changes out and removes the sandbox again. With -- the
agent is COMMAND itself, run in the first repository; with a PROMPT it is --agent.

The repositories on this machine are not touched (but see --mount): the changes wait
under the run's id for 'insightscli diff' and 'insightscli apply'. Standard output
carries what the command or the agent says, standard error all the rest.

The first Ctrl-C ends the run in order, the second at once; the sandbox is removed
either way. If the reader of the output goes away, the run is ended too.

On a terminal the run is shown on the screen, ? lists the keys; its last lines are
printed afterwards. With --plain, in CI and in a pipe there are lines alone.` +
			exits("0", "1", "2", "3", "4", "5", "7", "8", "124", "130", "143"),
		Example: `  insightscli run --repo . -- make test
  insightscli run --repo org/repo --branch main --json -- ./ci.sh
  insightscli run -d --repo . --timeout 20m -- go test ./...`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fill(cmd.ArgsLenAtDash(), args); err != nil {
				return err
			}
			o.settings = givenSettings(cmd.Flags())
			o.createPRGiven = cmd.Flags().Changed("create-pr")
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runRun(cmd.Context(), o)
		},
	}
	cmd.DisableFlagsInUseLine = true
	o.addFlags(cmd.Flags())
	a.completeValues(cmd)
	return cmd
}

// fill takes prompt and command from the arguments; dash is how many of them stood
// before --, or -1.
func (o *runOptions) fill(dash int, args []string) error {
	words := args
	if dash >= 0 {
		words, o.command = args[:dash], args[dash:]
	}
	switch {
	case len(words) > 1:
		return usageError("the prompt is one argument: quote it, or put -- before a command (got %q, %q)", words[0], words[1])
	case dash >= 0 && len(o.command) == 0:
		return usageError("-- needs a COMMAND behind it")
	case len(o.command) > 0 && strings.TrimSpace(o.command[0]) == "":
		return usageError("COMMAND is empty")
	case len(words) == 1 && words[0] == "-":
		return o.readPrompt()
	case len(words) == 1:
		o.prompt = words[0]
		if strings.TrimSpace(o.prompt) == "" {
			return usageError("PROMPT is empty")
		}
	}
	return nil
}

// readPrompt takes the prompt from standard input.
func (o *runOptions) readPrompt() error {
	if o.app.streams.InTTY {
		return usageError("PROMPT - is read from standard input, which is a terminal: pipe a file into it")
	}
	b, err := io.ReadAll(io.LimitReader(o.app.streams.In, maxPrompt+1))
	if err != nil {
		return errs.New("cli.run", errs.Internal, "", "read the prompt from standard input: %w", err)
	}
	if len(b) > maxPrompt {
		return usageError("the prompt on standard input has more than %d bytes: put the rest into a file of the repository", maxPrompt)
	}
	if o.prompt = string(b); strings.TrimSpace(o.prompt) == "" {
		return usageError("the prompt on standard input is empty")
	}
	return nil
}

func runRun(ctx context.Context, o *runOptions) error {
	if o.start != "" {
		return runStart(ctx, o)
	}
	plan, err := o.freeze(ctx)
	if err != nil {
		return err
	}
	for _, w := range plan.warnings {
		o.say("warning: %s\n", w)
	}
	for _, n := range plan.notices {
		o.say("note: %s\n", n)
	}
	switch {
	case o.dryRun:
		return o.printSpec(plan.spec)
	case o.noStart, o.detach:
		return runLater(ctx, o, plan)
	}
	return o.execute(ctx, plan)
}

// execute carries out the run here and reports how it went.
func (o *runOptions) execute(ctx context.Context, p plan) error {
	ex, err := o.app.executor(ctx, p.config, p.spec)
	if err != nil {
		return err
	}
	sink := o.app.sink(o.json, o.quiet, len(p.spec.Schema) > 0)
	result, err := o.watch(ctx, ex, p, sink)
	if err != nil {
		return err
	}
	return o.ended(result, sink, o.exitCode)
}

// watch carries out the run with this terminal as its screen.
func (o *runOptions) watch(ctx context.Context, ex executor, p plan, sink task.Sink) (task.Result, error) {
	return o.attend(ctx, p.config, p.spec, sink, func(inbox <-chan task.Input, sink task.Sink) (task.Result, error) {
		return ex.Run(ctx, p.spec, p.secrets, inbox, sink)
	})
}

// attend makes this terminal the place where the agent of an interactive run asks, while
// run carries it out.
func (o *runOptions) attend(ctx context.Context, c config.Config, spec task.Spec, sink task.Sink, run func(<-chan task.Input, task.Sink) (task.Result, error)) (task.Result, error) {
	if o.app.state != nil && !o.json && !o.quiet && o.app.hasScreen(c) {
		return o.onScreen(ctx, spec, sink, run)
	}
	if st := o.app.streams; spec.Mode != task.ModeInteractive || !st.InTTY || !st.ErrTTY {
		return run(nil, sink)
	}
	talk := newTalk(sink, o.app.streams.Err)
	talking, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { talk.run(talking, o.app.streams.In) })
	return run(talk.inbox, talk)
}

// ended reports how a run went, and whether all of it could be shown.
func (o *runOptions) ended(result task.Result, sink screen, ownCode bool) error {
	if err := sink.Err(); err != nil && !errors.Is(err, term.ErrGone) {
		return errs.New("cli.run", errs.Internal, "insightscli logs "+result.Run.Short(), "write output: %w", err)
	}
	return resultError(result, ownCode)
}

// resultError turns a Result into the process's end. What the screens have said
// already is not said again.
func resultError(r task.Result, ownCode bool) error {
	kind := errs.Kind(r.Kind)
	switch {
	case ownCode && r.ExitCode != nil && (r.Code == 0 || kind == errs.TaskFailed):
		return exitWith(*r.ExitCode)
	case ownCode && kind == errs.TaskFailed && signalNumber(r.Signal) != 0:
		return exitWith(128 + signalNumber(r.Signal)) // as a shell has it
	case r.Code == 0, kind == errs.TaskFailed, kind == errs.Canceled, kind == errs.Terminated:
		return exitWith(r.Code)
	case r.Error == "":
		return errs.New("cli.run", kind, r.Hint, "run %s left something behind: %s", r.Run.Short(), r.Cleanup)
	}
	return errs.New("cli.run", kind, r.Hint, "%s", r.Error)
}

func (o *runOptions) printSpec(spec task.Spec) error {
	enc := json.NewEncoder(o.app.streams.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shownSpec(spec))
}

// say writes a message for people.
func (o *runOptions) say(format string, args ...any) {
	if !o.quiet && !o.json {
		fmt.Fprintf(o.app.streams.Err, format, args...)
	}
}

// screen is a sink that remembers whether its reader is still there.
type screen interface {
	task.Sink
	Err() error
}

// sink returns the screen for the streams of this process.
func (a *app) sink(json, quiet, valueOnly bool) screen {
	s := a.streams
	if json {
		return render.NewJSONL(s.Out)
	}
	return render.NewText(s.Out, s.Err, render.Options{
		OutTTY: s.OutTTY, ErrTTY: s.ErrTTY, Color: s.Color, Dumb: s.Dumb, Quiet: quiet, ValueOnly: valueOnly, ReasonFollows: true, Gone: s.Gone(),
	})
}
