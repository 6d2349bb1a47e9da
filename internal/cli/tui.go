package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/tui"
)

// guardCommand is the word that starts the process that gives the terminal back when the one
// that draws on it dies.
const guardCommand = "guard-terminal"

type tuiOptions struct {
	app *app

	run string // empty: the table of runs
}

func newTUICmd(a *app, runF func(context.Context, *tuiOptions) error) *cobra.Command {
	o := &tuiOptions{app: a}
	cmd := &cobra.Command{
		Use:   "tui [RUN]",
		Short: "Show runs on the screen, or one of them",
		Long: `Shows the table of runs, or one run with its steps, its conversation, its log and
its changes; 'insightscli' alone does the same. ? lists the keys. RUN is an id,
the beginning of one that no other run has, or "latest".` + exits("0", "1", "2", "5", "130", "143"),
		Example: `  insightscli tui
  insightscli tui latest`,
		Args:              takes(0, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.run = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runTUI(cmd.Context(), o)
		},
	}
	return cmd
}

func runTUI(ctx context.Context, o *tuiOptions) error {
	if _, _, ok := o.app.streams.Terminal(); !ok {
		return errs.New("cli.tui", errs.Usage, "insightscli ps, insightscli logs -f RUN", "the screens need a terminal for input and output")
	}
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	if o.run != "" {
		if _, err := s.store.Find(ctx, o.run); err != nil {
			return err
		}
	}
	return o.app.show(ctx, s, tui.Options{Run: o.run})
}

// hasScreen reports whether the screens are what somebody who starts a run here wants.
func (a *app) hasScreen(c config.Config) bool {
	_, _, ok := a.streams.Terminal()
	return ok && !c.Machine.Plain && c.Machine.CI == ""
}

// show shows the screens until they are left. What others write to the streams meanwhile
// is written afterwards.
func (a *app) show(ctx context.Context, s *state, o tui.Options) error {
	in, out, _ := a.streams.Terminal()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	about := screens{app: a, state: s}
	o.Source, o.Actions, o.In, o.Out, o.Color, o.Now = about, about, in, out, a.streams.Color, time.Now
	o.Interrupt, o.Guard, o.Repo = interruptSelf, []string{self, guardCommand}, "."
	release := a.streams.Hold()
	defer release()
	if err := tui.Show(ctx, o); err != nil {
		if ctx.Err() != nil {
			return err // as it was asked to end
		}
		return fmt.Errorf("show the screen: %w", err)
	}
	return nil
}

// guardTerminal is the guard's whole life. It is no command: nobody but [app.show] starts it.
func guardTerminal(p Process) int {
	_, tty, _ := p.Streams.Terminal()
	if tty == nil || tui.Guard(p.Streams.In, tty) != nil {
		return errs.Internal.Code()
	}
	return 0
}
