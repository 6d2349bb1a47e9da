package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

const halfHour = 30 * time.Minute

// clock is a run whose limits are watched, in virtual time.
type clock struct {
	t    *testing.T
	work context.Context
	l    *limits
}

// watched runs f with the limits of a run that has an agent.
func watched(t *testing.T, wall, idle time.Duration, f func(c clock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		work, l := arm(t.Context(), task.Spec{Timeout: task.Duration(wall), IdleTimeout: task.Duration(idle)}, time.Now())
		defer l.disarm()
		l.watch()
		f(clock{t, work, l})
	})
}

// after waits and says how the work stands then.
func (c clock) after(d time.Duration, want error) {
	c.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if got := context.Cause(c.work); !errors.Is(got, want) {
		c.t.Fatalf("after %s more the work was ended by %v, want %v", d, got, want)
	}
}

func TestSilenceEndsTheRunAfterTheIdleTimeout(t *testing.T) {
	watched(t, 0, halfHour, func(c clock) {
		c.after(halfHour-time.Second, nil)
		c.l.active()
		c.after(halfHour-time.Second, nil)
		c.after(time.Second, errIdle)
	})
}

// A tool call that says nothing is kept alive by the heartbeats of its turn, but not
// for ever: for half an hour, after which the idle clock runs out.
func TestHeartbeatsKeepASilentTurnForHalfAnHour(t *testing.T) {
	watched(t, 0, halfHour, func(c clock) {
		end := time.Now().Add(2*halfHour - time.Second)
		for time.Now().Before(end) {
			c.after(min(30*time.Second, time.Until(end)), nil)
			c.l.beat()
		}
		c.after(time.Second, errIdle)
	})
}

// What is said to an agent opens the window anew: its turn may be silent, too.
func TestActivityOpensTheWindowOfHeartbeatsAnew(t *testing.T) {
	watched(t, 0, 3*halfHour, func(c clock) {
		c.after(2*halfHour, nil)
		c.l.beat() // too late to count
		c.after(time.Minute, nil)
		c.l.active()
		c.after(halfHour, nil)
		c.l.beat() // counts
		c.after(3*halfHour-time.Second, nil)
		c.after(time.Second, errIdle)
	})
}

func TestWallClockIsNotResetByActivity(t *testing.T) {
	watched(t, time.Hour, 0, func(c clock) {
		for range 59 {
			c.after(time.Minute, nil)
			c.l.active()
			c.l.beat()
		}
		c.after(time.Minute, errWallClock)
		if got := errs.KindOf(context.Cause(c.work)); got != errs.Timeout {
			c.t.Errorf("kind %s", got)
		}
	})
}

func TestZeroTurnsALimitOff(t *testing.T) {
	watched(t, 0, 0, func(c clock) { c.after(1000*time.Hour, nil) })
}

// Clones and image builds take their time: nobody was idle meanwhile.
func TestTheIdleClockBeginsWithTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work, l := arm(t.Context(), task.Spec{IdleTimeout: task.Duration(time.Minute)}, time.Now())
		defer l.disarm()
		c := clock{t, work, l}
		c.after(time.Hour, nil)
		l.watch()
		c.after(59*time.Second, nil)
		c.after(time.Second, errIdle)
	})
}

// A run taken over keeps its wall clock, and gets a new idle clock.
func TestATakenOverRunKeepsItsWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(-50 * time.Minute)
		work, l := arm(t.Context(), task.Spec{Timeout: task.Duration(time.Hour), IdleTimeout: task.Duration(halfHour)}, began)
		defer l.disarm()
		l.watch()
		c := clock{t, work, l}
		c.after(10*time.Minute-time.Second, nil)
		c.after(time.Second, errWallClock)
	})
}

// Only the agent's session and what its command writes count; console lines,
// progress, errors and usage do not, and neither does a heartbeat without a turn.
func TestWhatCountsAsActivity(t *testing.T) {
	update := func(method string) wire.Frame {
		return wire.Frame{Type: wire.FrameEvent, Method: method, Data: []byte(`{}`)}
	}
	for name, tt := range map[string]struct {
		frame  wire.Frame
		counts bool
	}{
		"session update":    {update("session/update"), true},
		"session request":   {update("session/request_permission"), true},
		"output":            {wire.Frame{Type: wire.FrameStdout, Data: []byte("x\n")}, true},
		"errors' output":    {wire.Frame{Type: wire.FrameStderr, Data: []byte("x\n")}, true},
		"console":           {update("_insights/console"), false},
		"progress":          {update("_insights/progress"), false},
		"error":             {update("_insights/error"), false},
		"usage":             {update("_insights/usage_update"), false},
		"heartbeat":         {wire.Frame{Type: wire.FrameHeartbeat, Data: []byte(`{"agent_active":true}`)}, true},
		"heartbeat, idle":   {wire.Frame{Type: wire.FrameHeartbeat, Data: []byte(`{"agent_active":false}`)}, false},
		"heartbeat, broken": {wire.Frame{Type: wire.FrameHeartbeat, Data: []byte(`{`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			watched(t, 0, halfHour, func(c clock) {
				f := quietFollower(c.t, c.l)
				c.after(halfHour-time.Second, nil)
				if tt.frame.Type != wire.FrameHeartbeat {
					tt.frame.Seq = 1
				}
				if err := f.frame(tt.frame); err != nil {
					c.t.Fatal(err)
				}
				var want error
				if !tt.counts {
					want = errIdle
				}
				c.after(time.Minute, want)
			})
		})
	}
}
