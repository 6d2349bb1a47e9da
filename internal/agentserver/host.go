package agentserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
)

// Host is what a driver has to work with.
type Host struct {
	Starter proc.Starter
	Env     []string // of the agent's processes
	Dir     string   // where they start, unless told otherwise
	Log     *slog.Logger
	// Attended says that there may be somebody to answer [Host.Ask].
	Attended bool

	uid, gid int // the agent's
	phase    func(name string)
	mask     func() *secret.Masker // nil: there is nothing to mask
	journal  *journal
	asked    asked
	held     held
}

// Event puts one event into the journal. It blocks while the journal is full, which
// is how the agent is held back: read nothing of the agent meanwhile. The error is
// that of ctx or of params, which must be smaller than a frame may be (wire.MaxFrame).
func (h *Host) Event(ctx context.Context, method string, params any) error {
	b, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("event %s: %w", method, err)
	}
	f := wire.Frame{Type: wire.FrameEvent, Method: method, Data: b}
	if size := wire.FrameSize(&f); size > wire.MaxFrame {
		return fmt.Errorf("event %s: %d bytes are more than a frame holds", method, size)
	}
	if _, err := h.journal.room(ctx); err != nil {
		return err
	}
	h.put(f)
	return nil
}

// Output opens a way into the journal for one output stream of a process:
// wire.FrameStdout or wire.FrameStderr. Output is taken until the process closes it
// or ctx ends.
func (h *Host) Output(ctx context.Context, kind wire.FrameType) (*Output, error) {
	ours, child, err := outputPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	o := &Output{File: child, tail: newTail(ours), done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = ours.Close() })
	go func() {
		defer close(o.done)
		newPump(kind, o.tail, h.journal).run(ctx)
		stop()
		_ = ours.Close()
	}()
	return o, nil
}

// Output is one output stream of a process on its way into the journal. Call
// Started after the start of the process, whether or not it succeeded, and [Drain]
// after its end.
type Output struct {
	File *os.File // the process's end
	tail *tail
	done chan struct{}
}

// Started closes our copy of the process's end.
func (o *Output) Started() { _ = o.File.Close() }

// Drain is called when a process has ended, with its outputs, and returns when
// everything that it wrote is in the journal. Where a child of it goes on holding a
// stream, that takes two silent seconds.
func Drain(outputs ...*Output) {
	for _, o := range outputs {
		o.tail.end()
	}
	for _, o := range outputs {
		<-o.done
	}
}
