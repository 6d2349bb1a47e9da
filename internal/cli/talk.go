package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// talk is somebody at a terminal who talks with the agent of a run: asked for leave,
// they answer; when a turn is over, they say what comes next, or nothing more.
type talk struct {
	sink  task.Sink
	err   io.Writer // the terminal, for questions
	inbox chan task.Input

	mu      sync.Mutex // guards queue
	queue   []task.Event
	arrived chan struct{} // capacity 1

	asked []task.Permission // what waits for an answer; the first one is asked for
	// number is that of its first option. Numbers go on from question to question: one that
	// is typed as another question takes the place of the first answers neither.
	number int
	turn   bool // it is theirs to say what comes next
}

// maxShownInput is how much of what the agent wants to do is shown, in characters.
const maxShownInput = 400

func newTalk(sink task.Sink, err io.Writer) *talk {
	return &talk{sink: sink, err: err, inbox: make(chan task.Input), arrived: make(chan struct{}, 1), number: 1}
}

// Emit implements task.Sink.
func (t *talk) Emit(ev task.Event) {
	t.sink.Emit(ev)
	if ev.Kind != task.KindPermission && ev.Kind != task.KindTurn && ev.Method != wire.EventPermitted {
		return
	}
	ev.Params = append(json.RawMessage(nil), ev.Params...)
	t.mu.Lock()
	t.queue = append(t.queue, ev)
	t.mu.Unlock()
	select {
	case t.arrived <- struct{}{}:
	default:
	}
}

// run reads what they say until in or ctx ends; then nothing more is said.
func (t *talk) run(ctx context.Context, in io.Reader) {
	defer close(t.inbox)
	lines := make(chan string)
	go readLines(ctx, in, lines)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.arrived:
			t.look()
		case line, ok := <-lines:
			if !ok || !t.line(ctx, strings.TrimSpace(line)) {
				return
			}
		}
	}
}

// readLines hands on what is typed. A read from a terminal cannot be interrupted: this
// may outlive ctx, until the process ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	for s := bufio.NewScanner(in); s.Scan(); {
		select {
		case lines <- s.Text():
		case <-ctx.Done():
			return
		}
	}
}

// look takes the events that have arrived.
func (t *talk) look() {
	t.mu.Lock()
	events := t.queue
	t.queue = nil
	t.mu.Unlock()
	for _, ev := range events {
		switch ev.Kind {
		case task.KindPermission:
			var p task.Permission
			if json.Unmarshal(ev.Params, &p) == nil {
				t.asked = append(t.asked, p)
				t.askFirst(len(t.asked) == 1)
			}
		case task.KindTurn:
			var turn task.Turn
			if json.Unmarshal(ev.Params, &turn) == nil && (turn.OK || turn.Category == task.TurnCancelled) {
				t.turn = true // one that failed ends the run
				fmt.Fprint(t.err, "your turn (an empty line ends the run)> ")
			}
		default:
			t.resolved(ev)
		}
	}
}

// resolved takes a question away that was answered, by them or by somebody else.
func (t *talk) resolved(ev task.Event) {
	var answered struct{ RequestID string }
	if json.Unmarshal(ev.Params, &answered) != nil || len(t.asked) == 0 {
		return
	}
	first, options := t.asked[0].RequestID, len(t.asked[0].Options)
	t.asked = slices.DeleteFunc(t.asked, func(p task.Permission) bool { return p.RequestID == answered.RequestID })
	gone := len(t.asked) == 0 || t.asked[0].RequestID != first
	if gone {
		t.number += options
	}
	t.askFirst(gone && len(t.asked) > 0)
}

// askFirst shows the request that waits longest, if that is news.
func (t *talk) askFirst(news bool) {
	if !news {
		return
	}
	asked := t.asked[0]
	fmt.Fprintf(t.err, "The agent asks for leave: %s\n", render.Clean(asked.ToolCall.Title))
	if input := oneLine(string(asked.ToolCall.Input)); input != "" {
		fmt.Fprintf(t.err, "  with %s\n", cell(input, maxShownInput))
	}
	for i, o := range asked.Options {
		fmt.Fprintf(t.err, "  %d  %s\n", t.number+i, render.Clean(o.Name))
	}
	fmt.Fprint(t.err, "number> ")
}

// line takes one line. It reports whether they may say more.
func (t *talk) line(ctx context.Context, line string) bool {
	switch {
	case len(t.asked) > 0:
		return t.answer(ctx, line)
	case line == "" && t.turn:
		return false
	case line == "":
		return true
	}
	t.turn = false
	return t.say(ctx, task.Input{Kind: task.InputMessage, Text: line})
}

// answer takes the number of an option.
func (t *talk) answer(ctx context.Context, line string) bool {
	asked := t.asked[0]
	n, err := strconv.Atoi(line)
	n -= t.number
	if err != nil || n < 0 || n >= len(asked.Options) {
		t.askFirst(true)
		return true
	}
	t.asked = t.asked[1:]
	t.number += len(asked.Options)
	t.askFirst(len(t.asked) > 0)
	return t.say(ctx, task.Input{Kind: task.InputPermission, Name: asked.RequestID, Value: asked.Options[n].ID})
}

func (t *talk) say(ctx context.Context, in task.Input) bool {
	in.ID = string(task.NewID())
	select {
	case t.inbox <- in:
		return true
	case <-ctx.Done():
		return false
	}
}
