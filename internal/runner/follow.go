package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// linkBound is how long a sandbox may take to answer on a new link.
	linkBound = 60 * time.Second
	// relinkPause is the wait between tries to get a lost link back.
	relinkPause = 200 * time.Millisecond
	// drainBound is how long the last words of a sandbox that ended may take to arrive.
	drainBound = 2 * time.Second
	// heldBound is how much may come after bytes that the masks hold back, on the other
	// stream say, before they are let go: what is held keeps everything after it in
	// the sandbox's journal, which stops the agent when it is full. It is well below
	// that, and no secret is cut in two by so much.
	heldBound = 16 << 20
	// frameCost is what a frame takes in that journal beside its data, at the most.
	frameCost = 64
	// syncPause is the least time between two commits of the log. What lies between
	// is still in the sandbox's own journal.
	syncPause = 100 * time.Millisecond
	// flushPause is how long output may wait in memory before readers of the log see it.
	flushPause = 5 * time.Millisecond
)

// follow writes what the agent does until it is done, the sandbox is gone or the
// work is cancelled. A cancelled agent is asked to stop and followed until it has,
// for stopBound at most.
func (x *execution) follow(ctx context.Context) error {
	st := step{"follow", "Following the agent", "The agent is done"}
	x.story.step(st.name, task.StepInProgress, st.doing, "")
	f := x.newFollower()
	err := f.follow(ctx)
	switch {
	case errors.Is(context.Cause(ctx), ErrAbandoned): // it goes on elsewhere
	case errors.Is(context.Cause(ctx), errIdle): // an end like another
		x.story.step(st.name, task.StepCompleted, "Stopped the agent", errIdle.Error())
	case context.Cause(ctx) != nil:
		x.story.step(st.name, task.StepFailed, st.doing, context.Cause(ctx).Error())
	case err != nil:
		x.story.step(st.name, task.StepFailed, st.doing, err.Error())
	default:
		x.story.step(st.name, task.StepCompleted, st.done, "")
	}
	return err
}

// follower turns the frames of one agent server into events.
type follower struct {
	x       *execution
	streams map[wire.FrameType]*secret.Stream
	written uint64 // frames up to this one are in the log (from an earlier host, too)
	last    uint64 // the newest frame seen
	held    int    // bytes that came since the masks began to hold something back

	ackable atomic.Uint64 // frames up to this one are in the log, with nothing held back
	dirty   chan struct{} // something waits for a commit; capacity 1

	gone chan struct{} // closed when the sandbox has ended before its agent did
	why  error         // how it ended; set before gone is closed
}

func (x *execution) newFollower() *follower {
	_, eventID := x.story.log.Last()
	return &follower{x: x, written: eventID, dirty: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (f *follower) follow(work context.Context) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(work))
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil) // before the wait

	wg.Go(func() { f.commit(ctx) })
	wg.Go(func() { f.watchSandbox(ctx, cancel) })
	wg.Go(func() { f.stopWhenCancelled(ctx, work, cancel) })
	if f.x.spec.Agent.Drives() {
		f.x.turns.followed(f.x.services.Follow != nil)
		if f.x.services.Follow != nil {
			wg.Go(func() { f.x.followUp(ctx) })
		}
		wg.Go(func() { f.x.turns.mind(ctx) })
	}
	err := f.frames(ctx)
	if f.x.outcome != nil {
		f.x.turns.judge(context.WithoutCancel(ctx), false) // the agent is over: nothing can be asked again
	}
	if f.x.outcome == nil && !errors.Is(err, ErrAbandoned) {
		f.flush(task.Event{EventID: f.written}) // nothing more comes that could decide about it
	}
	return err
}

// frames follows the agent over one link after the other.
func (f *follower) frames(ctx context.Context) error {
	for {
		// What was held back is sent again: only frames with nothing held are
		// acknowledged.
		f.streams = map[wire.FrameType]*secret.Stream{
			wire.FrameStdout: f.x.story.mask().Stream(),
			wire.FrameStderr: f.x.story.mask().Stream(),
		}
		f.held = 0
		err := f.x.client.Follow(ctx, 0, f.frame)
		switch {
		case f.x.outcome != nil:
			return nil
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case !errors.Is(err, agent.ErrLost):
			return fmt.Errorf("follow the agent: %w", err)
		}
		if err := f.relink(ctx); err != nil {
			return err
		}
	}
}

// relink gets a lost link back.
func (f *follower) relink(ctx context.Context) error {
	x := f.x
	x.runner.setClient(x.spec.Run, nil)
	_ = x.client.Close() // it is lost
	deadline := time.Now().Add(linkBound)
	for {
		err := x.connect(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-f.gone:
			return f.why
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(relinkPause):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// watchSandbox ends the following when the sandbox ends before its agent did. What
// it said last may still be on its way.
func (f *follower) watchSandbox(ctx context.Context, cancel context.CancelCauseFunc) {
	exit, err := f.x.box.Wait(ctx)
	if err != nil {
		return // ctx is done, or the engine does not answer: the link tells
	}
	msg := fmt.Sprintf("the sandbox ended with code %d before its agent did", exit.Code)
	if out := strings.TrimSpace(exit.Output); out != "" {
		msg += ": " + lastLine(out)
	}
	f.why = errs.New("runner.follow", errs.Internal,
		"insightscli logs "+f.x.spec.Run.Short()+" --server-log", "%s", f.x.story.mask().MaskString(msg))
	close(f.gone)
	select {
	case <-ctx.Done():
	case <-time.After(drainBound):
		cancel(f.why)
	}
}

// stopWhenCancelled asks the agent to end its turn once the work is cancelled, and
// gives up on it after a while.
func (f *follower) stopWhenCancelled(ctx, work context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-f.x.story.broken:
		cancel(fmt.Errorf("write the event log: %w", f.x.story.err()))
		return
	case <-work.Done():
	}
	if errors.Is(context.Cause(work), ErrAbandoned) {
		cancel(ErrAbandoned)
		return
	}
	defer cancel(context.Cause(work))
	f.x.turns.leave()
	bounded, done := context.WithTimeout(ctx, stopBound)
	defer done()
	client, err := f.x.runner.Client(f.x.spec.Run)
	if err != nil {
		return // no link to ask over
	}
	if err := client.Send(bounded, task.Input{ID: string(task.NewID()), Kind: task.InputInterrupt}); err != nil {
		return
	}
	select {
	case <-bounded.Done():
	case <-f.x.runner.c.Force:
	}
}

// commit makes the log durable from time to time and tells the sandbox what it may
// forget.
func (f *follower) commit(ctx context.Context) {
	for dirty := false; ctx.Err() == nil; {
		if !dirty {
			select {
			case <-ctx.Done():
				return
			case <-f.dirty:
			}
		}
		n := f.ackable.Load()
		if err := f.x.story.log.Sync(); err != nil {
			f.x.story.fail(err) // unacknowledged, the sandbox would soon stop its agent
			return
		}
		if c, err := f.x.runner.Client(f.x.spec.Run); err == nil && n > 0 {
			c.Ack(n) // without a link the next commit tells the next one
		}
		dirty = f.rest(ctx)
	}
}

// rest lets the pause between two commits go by. What comes meanwhile is shown to the
// readers of the log soon, and makes it dirty.
func (f *follower) rest(ctx context.Context) (dirty bool) {
	end := time.NewTimer(syncPause)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return dirty
		case <-end.C:
			return dirty
		case <-f.dirty:
		}
		dirty = true
		select {
		case <-ctx.Done():
			return dirty
		case <-time.After(flushPause):
		}
		if err := f.x.story.log.Flush(); err != nil {
			return dirty // the commit fails on it, too, and says so
		}
	}
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
