package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
)

type sendOptions struct {
	app *app

	run       string
	text      string
	steer     bool
	interrupt bool
	answer    string
	option    string
}

func newSendCmd(a *app, runF func(context.Context, *sendOptions) error) *cobra.Command {
	o := &sendOptions{app: a}
	cmd := &cobra.Command{
		Use:   "send RUN [TEXT]",
		Short: "Say something to the agent of a live run",
		Long: `Gives the agent of a live run another message, which it takes up when its turn
is over; with --steer the words go into the turn that is going on, if the agent
can take them. --interrupt ends the turn and not the run. --answer answers a
request for leave, which the run's log shows with its id and its options. What
is said is recorded first: it reaches the agent even if the process of the run
dies meanwhile. RUN is an id, the beginning of one that no other run has, or
"latest".` + exits("0", "1", "2", "5"),
		Example: `  insightscli send latest "now run the tests as well"
  insightscli send latest --steer "leave the documentation alone"
  insightscli send 3f9a --answer toolu_01=allow_once`,
		Args:              takes(1, 2, "a RUN and a TEXT"),
		ValidArgsFunction: a.completeRuns(journal.Filter{Live: true}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			if len(args) > 1 {
				o.text = args[1]
			}
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSend(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.steer, "steer", false, "say it into the turn that is going on")
	f.BoolVar(&o.interrupt, "interrupt", false, "end the turn that is going on")
	f.StringVar(&o.answer, "answer", "", "answer a request for leave: `REQUEST=OPTION`")
	f.StringVar(&o.option, "option", "", "set an option of the agent's session: `NAME=VALUE`, such as model=opus")
	return cmd
}

func (o *sendOptions) validate() error {
	given := 0
	for _, is := range []bool{o.text != "", o.interrupt, o.answer != "", o.option != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return usageError("send needs one of TEXT, --interrupt, --answer and --option")
	case o.steer && o.text == "":
		return usageError("--steer needs a TEXT")
	case len(o.text) > maxPrompt:
		return usageError("the text has %d bytes; at most %d are taken", len(o.text), maxPrompt)
	}
	for flag, text := range map[string]string{"answer": o.answer, "option": o.option} {
		if name, value, ok := strings.Cut(text, "="); text != "" && (!ok || name == "" || value == "") {
			return usageError("--%s: %q has not the form NAME=VALUE", flag, text)
		}
	}
	return nil
}

// input is what is said.
func (o *sendOptions) input() task.Input {
	in := task.Input{ID: string(task.NewID()), Kind: task.InputMessage, Text: o.text}
	switch {
	case o.interrupt:
		in.Kind = task.InputInterrupt
	case o.answer != "":
		in.Kind = task.InputPermission
		in.Name, in.Value, _ = strings.Cut(o.answer, "=")
	case o.option != "":
		in.Kind = task.InputOption
		in.Name, in.Value, _ = strings.Cut(o.option, "=")
	case o.steer:
		in.Kind = task.InputSteer
	}
	return in
}

func runSend(ctx context.Context, o *sendOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	if !rec.Spec.Agent.Drives() {
		return errs.New("cli.send", errs.Conflict, "insightscli exec "+rec.Spec.Run.Short()+" -- COMMAND",
			"run %s is a plain command, which takes no messages", rec.Spec.Run.Short())
	}
	if _, err := s.store.AddInput(ctx, rec.Spec.Run, o.input()); err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Err, "recorded; follow it with: insightscli logs -f %s\n", rec.Spec.Run.Short())
	return s.knockFor(ctx, rec)
}
