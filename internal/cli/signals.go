package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/Insights/insightscli/internal/errs"
)

// Signals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, with
// a cause of kind Canceled or Terminated, and a channel that the second one closes.
// From then on signals have their default effect, so the third ends the process.
// stop gives every signal its default effect back and waits.
//
// A SIGHUP that was ignored when the program started stays ignored: nohup means it.
//
// SIGPIPE is taken and ignored: a write to a closed pipe is an error like another,
// and children get the default (an ignored signal would be inherited).
func Signals(parent context.Context) (ctx context.Context, force <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)

	forced, quit := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case s := <-signals:
			cancel(signalCause(s))
		case <-quit:
			return
		}
		select {
		case <-signals:
			signal.Stop(signals)
			close(forced)
		case <-quit:
		}
	})
	return ctx, forced, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(quit)
		wg.Wait()
		cancel(nil)
	}
}

// signalCause is the error that a signal ends the work with.
func signalCause(s os.Signal) error {
	if s == os.Interrupt {
		return errs.New("cli.Signals", errs.Canceled, "", "interrupted")
	}
	return errs.New("cli.Signals", errs.Terminated, "", "%v", s) // terminated, hangup
}
