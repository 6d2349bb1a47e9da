//go:build !windows

package cli

import (
	"context"
	"os/signal"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// A run under nohup must outlive its terminal.
func TestSignalsLeaveAnIgnoredHangupIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, _, stop := Signals(t.Context())
	defer stop()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	<-ctx.Done()
	if cause := context.Cause(ctx).Error(); cause != syscall.SIGTERM.String() {
		t.Errorf("ended by %s", cause)
	}
}

func TestSignals(t *testing.T) {
	ctx, force, stop := Signals(t.Context())
	defer stop()
	kill := func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	<-ctx.Done()
	if got := errs.KindOf(context.Cause(ctx)); got != errs.Terminated {
		t.Errorf("kind = %s", got)
	}
	select {
	case <-force:
		t.Error("the first signal forces")
	default:
	}
	kill()
	<-force
}
