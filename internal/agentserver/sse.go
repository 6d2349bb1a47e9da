package agentserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// keepAlive is between two comments on a silent /events.
	keepAlive = 25 * time.Second
	// sseWrite bounds one write to a client that does not read.
	sseWrite = 30 * time.Second
)

// events sends every event that is still here and has not been seen (Last-Event-ID),
// then "connected", then events as they come. Only the newest client is served.
//
// What the host has taken is kept for late clients up to recentEvents; older events
// are in the host's log only, and their numbers are missing here.
func (h *surface) events(w http.ResponseWriter, r *http.Request) {
	seen, _ := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64) // absent or foreign: everything
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	ctx, cancel := h.reader.take(r.Context())
	defer cancel()
	out := &eventWriter{w: w, control: http.NewResponseController(w), seen: seen}
	out.mask = newOutputMask(h.server.mask(), h.server.journal.first())
	seen = 0 // the masks look at what came before, too
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	connected := false
	frames := make([]wire.Frame, 0, batch)
	for {
		var added <-chan struct{}
		frames, added = h.server.journal.after(frames[:0], seen, batch)
		for i := range frames {
			out.frame(&frames[i])
			seen = frames[i].Seq
		}
		clear(frames)
		if added == nil && out.err == nil {
			continue
		}
		if !connected {
			connected = true
			out.connected(h.server.boot.Run)
		}
		out.flush()
		if out.err != nil || !waitNews(ctx, out, added, tick.C) {
			return
		}
	}
}

// waitNews waits for the journal and keeps the connection alive meanwhile.
func waitNews(ctx context.Context, out *eventWriter, added <-chan struct{}, tick <-chan time.Time) bool {
	for {
		select {
		case <-added:
			return true
		case <-ctx.Done():
			return false
		case <-tick:
			out.write([]byte(": keepalive\n\n"))
			out.flush()
			if out.err != nil {
				return false
			}
		}
	}
}

// eventWriter writes server-sent events and remembers the first error.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
	err     error
	seen    uint64 // by the client, before
	mask    *outputMask
}

func (e *eventWriter) write(b []byte) {
	if e.err != nil {
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(sseWrite)) // a stream of the link may have none
	_, e.err = e.w.Write(b)
}

func (e *eventWriter) flush() {
	if e.err == nil {
		e.err = e.control.Flush()
	}
}

// frame writes one frame as the stored line has it, masked, with its number as the
// id. Output that is held back, because it may be the beginning of a secret, comes
// with the next frame.
func (e *eventWriter) frame(f *wire.Frame) {
	ev := task.Event{Seq: f.Seq, At: f.At, EventID: f.Seq}
	switch f.Type {
	case wire.FrameStdout, wire.FrameStderr:
		text := e.mask.output(f)
		if len(text) == 0 {
			return
		}
		ev.Kind, ev.Params = task.KindOutput, task.AppendOutput(nil, streamName(f.Type), text, f.Continued || e.mask.holds(f.Type))
	case wire.FrameDone:
		e.held(f)
		var params json.RawMessage
		ev.Method, params = doneEvent(f.Data)
		ev.Params = e.mask.mask.MaskJSON(params)
	default:
		ev.Method, ev.Params = f.Method, e.mask.mask.MaskJSON(f.Data)
	}
	e.event(f.Seq, ev)
}

// held writes what the masks hold back when no more output can come.
func (e *eventWriter) held(done *wire.Frame) {
	for _, t := range []wire.FrameType{wire.FrameStdout, wire.FrameStderr} {
		if text := e.mask.rest(t); len(text) > 0 {
			e.event(done.Seq, task.Event{
				Seq: done.Seq, At: done.At, EventID: done.Seq,
				Kind: task.KindOutput, Params: task.AppendOutput(nil, streamName(t), text, false),
			})
		}
	}
}

func streamName(t wire.FrameType) task.Stream {
	if t == wire.FrameStderr {
		return task.Stderr
	}
	return task.Stdout
}

// event writes one event unless the client has it.
func (e *eventWriter) event(seq uint64, ev task.Event) {
	if seq <= e.seen {
		return
	}
	e.buf = append(e.buf[:0], "id: "...)
	e.buf = strconv.AppendUint(e.buf, seq, 10)
	e.buf = append(e.buf, "\ndata: "...)
	e.buf = ev.AppendLine(e.buf) // one line, and its line end
	e.buf = append(e.buf, '\n')
	e.write(e.buf)
}

// doneEvent is the end in the words of outside clients.
func doneEvent(outcome []byte) (method string, params json.RawMessage) {
	var o wire.Outcome
	if json.Unmarshal(outcome, &o) == nil && o.StopReason == StopError {
		return "_insights/error", outcome
	}
	return "_insights/task_complete", outcome
}

func (e *eventWriter) connected(run string) {
	b, _ := json.Marshal(map[string]string{"type": "connected", "run_id": run}) // strings always marshal
	e.write(append(append([]byte("data: "), b...), "\n\n"...))
}
