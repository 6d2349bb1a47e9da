package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// silentBound is how long a turn or command that prints nothing at all is kept
// alive by its heartbeats alone.
const silentBound = 30 * time.Minute

// The ends that are not the agent's own.
var (
	errIdle      = errors.New("no activity")
	errWallClock = errs.New("runner.limits", errs.Timeout, "give the run more time with --timeout", "the wall-clock limit ended the run")
	errCanceled  = errs.New("runner.inputs", errs.Canceled, "", "the run was cancelled")
)

// limits watches the clocks of a run and cancels its work when one runs out.
type limits struct {
	cancel   context.CancelCauseFunc
	timer    *time.Timer // wall clock; nil without one
	idle     time.Duration
	stopIdle chan struct{}
	idleDone chan struct{}

	start    time.Time    // zero of the clocks below; monotonic, so a changed system clock kills nothing
	activity atomic.Int64 // nanoseconds since start of the last activity, heartbeats included
	spoke    atomic.Int64 // nanoseconds since start of the last activity that was no heartbeat
}

// arm starts the wall clock of a run. started is when it first began: for a run taken
// over from a dead process the time it had then goes on. The work does not end with
// ctx by itself: the end is journalled first.
func arm(ctx context.Context, spec task.Spec, started time.Time) (context.Context, *limits) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l := &limits{cancel: cancel, idle: spec.IdleTimeout.Std(), start: time.Now()}
	if wall := spec.Timeout.Std(); wall > 0 {
		left := max(wall-time.Since(started), 0)
		l.timer = time.AfterFunc(left, func() { cancel(errWallClock) })
	}
	return work, l
}

// watch starts the idle clock, anew for a run that was taken over. It is called once,
// when there is an agent: until then nobody could have been active, and a long
// download is no idle end.
func (l *limits) watch() {
	l.active()
	if l.idle > 0 {
		l.stopIdle, l.idleDone = make(chan struct{}), make(chan struct{})
		go l.watchIdle()
	}
}

// disarm stops the clocks and waits for their goroutine.
func (l *limits) disarm() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.stopIdle != nil {
		close(l.stopIdle)
		<-l.idleDone
	}
	l.cancel(context.Canceled)
}

func (l *limits) watchIdle() {
	defer close(l.idleDone)
	t := time.NewTimer(l.idle)
	defer t.Stop()
	for {
		select {
		case <-l.stopIdle:
			return
		case <-t.C:
			left := l.idle - (time.Since(l.start) - time.Duration(l.activity.Load()))
			if left <= 0 {
				l.cancel(errIdle)
				return
			}
			t.Reset(left)
		}
	}
}

// active notes that something was done that counts: the agent said something in its
// session, its command wrote something, or somebody said something to it. Console
// lines, progress and errors do not count.
func (l *limits) active() {
	now := int64(time.Since(l.start))
	l.activity.Store(now)
	l.spoke.Store(now)
}

// beat notes a heartbeat of a turn that is going on. It counts for [silentBound]
// after the last thing that was done.
func (l *limits) beat() {
	now := time.Since(l.start)
	if now-time.Duration(l.spoke.Load()) <= silentBound {
		l.activity.Store(int64(now))
	}
}
