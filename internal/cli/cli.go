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
	"fmt"
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
// backstop: commands that hold a sandbox bound themselves to two seconds. slowStop is
// how long the first signal may take before the user is told about a second.
const (
	forcedExit = 3 * time.Second
	slowStop   = 300 * time.Millisecond
)

// Main runs one command and returns the exit code of the process. A context that
// is cancelled by [Signals] asks the command to stop in order.
func Main(ctx context.Context, p Process) int {
	if len(p.Args) == 1 && p.Args[0] == guardCommand {
		return guardTerminal(p)
	}
	return newApp(p).main(ctx)
}

func (a *app) main(ctx context.Context) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	root := newRootCmd(a)
	root.SetArgs(a.process.Args)

	done := make(chan outcome, 1)
	go func() {
		cmd, err := root.ExecuteContextC(ctx)
		a.revokeMinted(ctx)
		done <- outcome{cmd, errors.Join(err, a.close())}
	}()
	return a.attend(ctx, cancel, done)
}

// outcome is how a command ended.
type outcome struct {
	cmd *cobra.Command
	err error
}

// attend waits for the command's end, and meanwhile for the user's impatience and
// for the reader of the output to go away.
func (a *app) attend(ctx context.Context, cancel context.CancelCauseFunc, done <-chan outcome) int {
	force, gone, canceled := a.process.Force, a.streams.Gone(), ctx.Done()
	var slow, late <-chan time.Time
	for {
		select {
		case o := <-done:
			return a.report(o.cmd, a.causeOf(ctx, o.err))
		case <-gone:
			// The runner tells by the kind that this is no failure.
			cancel(errs.New("cli.Main", errs.Canceled, "", "%w", term.ErrGone))
			gone = nil
		case <-canceled:
			canceled, slow = nil, time.After(slowStop)
		case <-slow:
			a.sayStopping(ctx)
		case <-force:
			force, slow, late = nil, nil, time.After(forcedExit)
		case <-late:
			return errs.KindOf(context.Cause(ctx)).Code()
		}
	}
}

// sayStopping tells somebody who waits after a first Ctrl-C what a second one does.
func (a *app) sayStopping(ctx context.Context) {
	if !errors.Is(context.Cause(ctx), term.ErrGone) && !wantsJSON(a.process.Args) {
		fmt.Fprintln(a.streams.Err, "note: stopping; a second Ctrl-C does not wait")
	}
}

// causeOf replaces "context canceled", and what a command made of the cause, by why
// it was cancelled: a server that was not waited for is not one that does not answer.
func (a *app) causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err != nil && cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		return cause
	}
	return err
}
