//go:build !windows

package cli

import (
	"context"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

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
