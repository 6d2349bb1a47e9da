package runner

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// frame takes one frame from the sandbox. Frames that an earlier host wrote pass
// through the masks only, so that a secret cut in two by its death is still found.
func (f *follower) frame(fr wire.Frame) error {
	if fr.Type == wire.FrameHeartbeat {
		var beat wire.Heartbeat
		if json.Unmarshal(fr.Data, &beat) == nil && beat.Active {
			f.x.limits.beat()
		}
		return nil
	}
	if err := f.order(fr); err != nil {
		return err
	}
	f.last = fr.Seq
	switch fr.Type {
	case wire.FrameStdout, wire.FrameStderr:
		f.output(fr)
	case wire.FrameEvent:
		f.event(fr)
	case wire.FrameDone:
		return f.done(fr)
	}
	f.free(fr)
	select {
	case f.dirty <- struct{}{}:
	default:
	}
	return nil
}

// order checks that no frame is missing. After a new link the sandbox repeats what
// was not acknowledged, so going back is fine.
func (f *follower) order(fr wire.Frame) error {
	switch {
	case fr.Seq == f.last+1 || fr.Seq <= f.last:
		return nil
	case f.last == 0 && fr.Seq <= f.written+1:
		return nil
	}
	return errs.New("runner.order", errs.Internal, "", "the sandbox skipped from event %d to %d", max(f.last, f.written), fr.Seq)
}

// free notes up to where the sandbox may forget.
func (f *follower) free(fr wire.Frame) {
	if f.streams[wire.FrameStdout].Held() > 0 || f.streams[wire.FrameStderr].Held() > 0 {
		f.held += len(fr.Data) + frameCost
		if f.held < heldBound || fr.Seq < f.written {
			return
		}
		f.flush(task.Event{At: fr.At, EventID: fr.Seq})
	}
	f.held = 0
	f.ackable.Store(fr.Seq)
}

func streamOf(t wire.FrameType) task.Stream {
	if t == wire.FrameStderr {
		return task.Stderr
	}
	return task.Stdout
}

func (f *follower) output(fr wire.Frame) {
	masked := f.streams[fr.Type].Write(fr.Data)
	if fr.Seq <= f.written {
		return
	}
	f.written = fr.Seq
	f.x.limits.active()
	if len(masked) > 0 {
		f.x.story.output(streamOf(fr.Type), masked, fr.Continued || f.streams[fr.Type].Held() > 0,
			task.Event{At: fr.At, EventID: fr.Seq})
	}
}

func (f *follower) event(fr wire.Frame) {
	if fr.Seq <= f.written {
		return
	}
	f.written = fr.Seq
	if !json.Valid(fr.Data) {
		f.x.story.notice("warn", "the agent server sent an event that is not JSON; it was dropped")
		return
	}
	if k := task.KindOf(fr.Method); k == task.KindFinished || k == task.KindStep || k == task.KindDenied || k == task.KindPublished || k == task.KindUsage || k == task.KindTurn {
		// Only the host tells of these: a forged end would be taken for the end.
		f.x.story.notice("warn", "the agent server sent an event of the host's; it was dropped")
		return
	}
	if strings.HasPrefix(fr.Method, "session/") {
		f.x.limits.active()
	}
	f.x.story.emit(task.Event{
		At: fr.At, Kind: task.KindOf(fr.Method), Method: fr.Method, EventID: fr.Seq,
		Params: f.x.story.mask().MaskJSON(fr.Data),
	})
}

// done takes the agent's own end, with what the masks still held back.
func (f *follower) done(fr wire.Frame) error {
	var out wire.Outcome
	if err := json.Unmarshal(fr.Data, &out); err != nil {
		return fmt.Errorf("read the agent's end: %w", err)
	}
	f.x.outcome = &out
	if fr.Seq <= f.written {
		return nil
	}
	f.flush(task.Event{At: fr.At, EventID: fr.Seq})
	if out.ExitCode != nil {
		f.x.story.exitCode(*out.ExitCode, task.Event{At: fr.At, EventID: fr.Seq})
	}
	return nil
}

// flush writes what the masks held back, as the event ev: the output ends here.
func (f *follower) flush(ev task.Event) {
	for _, typ := range []wire.FrameType{wire.FrameStdout, wire.FrameStderr} {
		if rest := f.streams[typ].Flush(); len(rest) > 0 {
			f.x.story.output(streamOf(typ), rest, true, ev)
		}
	}
}
