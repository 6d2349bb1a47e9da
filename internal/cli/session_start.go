package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/task"
)

type sessionStartOptions struct {
	app *app
	run runOptions

	json bool
}

func newSessionStartCmd(a *app, runF func(context.Context, *sessionStartOptions) error) *cobra.Command {
	o := &sessionStartOptions{app: a, run: runOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "start PROMPT [flags]",
		Short: "Begin a session and print the first reply",
		Long: `Makes a sandbox in the background, gives its agent the PROMPT and waits for the
reply. The session then stays open for 'session send' until 'session end', or
until --idle-timeout. With --schema the reply is a JSON value that fits: it is
checked here, and asked for again once if it does not. Standard output carries
the reply, standard error the session's id.

A first turn that fails, or whose wait is interrupted, ends the session as failed.` +
			exits("0", "1", "2", "4", "5", "7", "124", "130", "143"),
		Example: `  insightscli session start --repo . --schema items.json "Find up to 10 items to investigate."
  insightscli session start --repo org/repo --agent codex --json "What is this?"`,
		Args: takes(1, 1, "a PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.run.fill(-1, args); err != nil {
				return err
			}
			if err := o.run.asSession(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSessionStart(cmd.Context(), o)
		},
	}
	cmd.DisableFlagsInUseLine = true
	o.run.addSessionFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.json, "json", false, "print the session's id and the turn as one JSON object")
	a.completeValues(cmd)
	return cmd
}

// asSession makes these the options of a session, and checks them.
func (o *runOptions) asSession(cmd *cobra.Command) error {
	o.settings = givenSettings(cmd.Flags())
	o.createPRGiven = cmd.Flags().Changed("create-pr")
	o.mode, o.detach = string(task.ModeBackground), true
	if o.agent == agentExec {
		return usageError("a session needs an agent that replies, which exec is not")
	}
	return o.validate()
}

// freezeSession makes the plan of a session.
func (o *runOptions) freezeSession(ctx context.Context) (plan, error) {
	p, err := o.freeze(ctx)
	if err != nil {
		return plan{}, err
	}
	if !p.spec.Agent.Drives() {
		return plan{}, usageError("a session needs an agent that replies, which %s is not", p.spec.Agent.Name)
	}
	for _, w := range p.warnings {
		o.say("warning: %s\n", w)
	}
	for _, n := range p.notices {
		o.say("note: %s\n", n)
	}
	return p, nil
}

func runSessionStart(ctx context.Context, o *sessionStartOptions) error {
	o.run.json = o.json
	p, err := o.run.freezeSession(ctx)
	if err != nil {
		return err
	}
	d, err := o.app.begin(ctx, p)
	if err != nil {
		if d != nil {
			d.abandon(ctx, err)
		}
		return err
	}
	if !o.json {
		fmt.Fprintf(o.app.streams.Err, "session %s\n", d.id())
	}
	turn, err := d.turn(ctx, "")
	if err != nil {
		d.abandon(ctx, err)
		return err
	}
	return o.app.printTurn(d.id(), turn, o.json)
}
