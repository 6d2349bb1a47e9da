package cli

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/tui"
)

// onScreen carries out a run with the screens before it. They read the log as everybody
// does: a screen that is slow slows nothing. When they are left before the run is over, it
// goes on in plain lines.
func (o *runOptions) onScreen(ctx context.Context, spec task.Spec, sink task.Sink, run func(<-chan task.Input, task.Sink) (task.Result, error)) (task.Result, error) {
	behind := &behindScreen{plain: sink, valueOnly: len(spec.Schema) > 0}
	first := screenRun(spec)
	so := tui.Options{Run: string(spec.Run), First: &first, Hosted: true}
	var inbox chan task.Input // nothing comes this way: what is said is recorded first
	if spec.Mode == task.ModeInteractive {
		inbox = make(chan task.Input)
		so.End = sync.OnceFunc(func() { close(inbox) })
	}
	showing, leave := context.WithCancel(ctx)
	defer leave()
	var wg sync.WaitGroup
	var shown error
	wg.Go(func() {
		shown = o.app.show(showing, o.app.state, so)
		if so.End != nil {
			so.End()
		}
		behind.step()
	})
	res, err := run(inbox, behind)
	if err != nil || !behind.over() {
		leave() // no event will tell the screen
	}
	wg.Wait()
	if shown != nil && showing.Err() == nil {
		fmt.Fprintf(o.app.streams.Err, "note: %s\n", oneLine(shown.Error()))
	}
	return res, err
}

// behindScreen is the sink of a run that is shown on a screen. It lets go of the events,
// which the screen reads in the log, and keeps those that are to be said when it is left.
type behindScreen struct {
	plain     task.Sink
	valueOnly bool

	mu    sync.Mutex // guards the rest, and the order of what is emitted
	ahead bool       // the screen is gone: events go to plain
	last  []task.Event
	ended bool
}

// Emit implements task.Sink.
func (b *behindScreen) Emit(ev task.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = b.ended || ev.Kind == task.KindFinished
	switch {
	case b.ahead:
		b.plain.Emit(ev)
	case ev.Kind == task.KindFinished, ev.Kind == task.KindTurn && b.valueOnly:
		ev.Params = bytes.Clone(ev.Params)
		b.last = append(b.last, ev)
	}
}

// step takes the place of the screen.
func (b *behindScreen) step() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range b.last {
		b.plain.Emit(ev)
	}
	b.ahead, b.last = true, nil
}

func (b *behindScreen) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}
