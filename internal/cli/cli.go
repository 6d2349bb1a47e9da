// Package cli is the command tree of insightscli: one file a command, each with
// its options, its flags and the function that does the work, in reading order.
// It is the only place where concrete types meet (wire.go) and where errors are
// printed ([Main]).
//
// Data goes to standard output and everything else to standard error. Nothing
// here asks a question without a terminal. `version`, `help`, `completion` and
// `config` touch neither the state directory nor the network.
package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/term"
)

// Process is what the program is started with.
type Process struct {
	Streams *term.Streams
	Args    []string // without the program's name
	Environ []string
	Dir     string          // working directory
	Force   <-chan struct{} // closed by the second signal; see Signals
}

// forcedExit bounds what a command may still do after the second signal. It is a
// backstop: commands that hold a sandbox bound themselves to two seconds.
const forcedExit = 3 * time.Second

// Main runs one command and returns the exit code of the process. A context that
// is cancelled by [Signals] asks the command to stop in order.
func Main(ctx context.Context, p Process) int { return newApp(p).main(ctx) }

func (a *app) main(ctx context.Context) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	root := newRootCmd(a)
	root.SetArgs(a.process.Args)

	type outcome struct {
		cmd *cobra.Command
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		cmd, err := root.ExecuteContextC(ctx)
		done <- outcome{cmd, errors.Join(err, a.close())}
	}()

	force, gone := a.process.Force, a.streams.Gone()
	var late <-chan time.Time
	for {
		select {
		case o := <-done:
			return a.report(o.cmd, a.causeOf(ctx, o.err))
		case <-gone:
			// The runner tells by the kind that this is no failure.
			cancel(errs.New("cli.Main", errs.Canceled, "", "%w", term.ErrGone))
			gone = nil
		case <-force:
			late = time.After(forcedExit)
			force = nil
		case <-late:
			return errs.KindOf(context.Cause(ctx)).Code()
		}
	}
}

// causeOf replaces "context canceled" by why it was cancelled.
func (a *app) causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return cause
}
