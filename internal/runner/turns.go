package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/reply"
	"github.com/Insights/insightscli/internal/task"
)

// endPause is between two tries to end an agent whose link is being made anew.
const endPause = 200 * time.Millisecond

// turns minds the turns of an agent: it judges each one that has ended, asks once more
// for a reply that could not be used, and ends the agent when there is nothing left to
// do for it. Everything that it knows it has from the run's own events and inputs, so
// that the runner that comes after a crash knows the same.
type turns struct {
	x *execution

	judging sync.Mutex // held by whoever judges

	mu      sync.Mutex // guards the rest
	tracker *reply.Turns
	over    map[string]bool            // ids of the messages whose turns have ended, or that were refused
	schemas map[string]json.RawMessage // of the replies to messages, by their ids
	last    *task.Turn
	final   *final // how the run is to end, once somebody has said it
	talking bool   // somebody may still say something: the inbox is open
	leaving bool   // the work is cancelled: nothing more is begun
	// following says that the services may still say something to an agent at rest.
	following bool
	rested    time.Time // when the last turn ended
	asked     []string  // ids of the host's own questions that nobody has answered
	// published is what was published, each branch and pull request as it was last.
	published []task.Published
	wake      chan struct{}
}

// final is an end of the run that somebody asked for.
type final struct {
	state   task.State
	message string
	now     bool // without waiting for the turn that is going on
}

func newTurns(x *execution) *turns {
	t := &turns{x: x, over: map[string]bool{}, schemas: map[string]json.RawMessage{}, wake: make(chan struct{}, 1)}
	t.tracker = reply.NewTurns(t.schema)
	return t
}

// event takes one event of the run, as it comes or as it is read from the log.
func (t *turns) event(ev task.Event) {
	t.x.denied.event(ev)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracker.Event(ev)
	switch {
	case ev.Method == wire.EventTurnComplete:
		if c, ok := read[wire.TurnComplete](ev); ok {
			t.over[c.MessageID] = true
		}
	case ev.Method == wire.EventUserMessage:
		if m, ok := read[wire.UserMessage](ev); ok && m.Steer {
			t.over[m.MessageID] = true // it went into a turn that is another's
		}
	case ev.Kind == task.KindNotice:
		if n, ok := read[task.Notice](ev); ok && n.MessageID != "" {
			t.over[n.MessageID] = true // refused
		}
	case ev.Kind == task.KindTurn:
		if turn, ok := read[task.Turn](ev); ok {
			t.told(turn)
		}
		t.rested = ev.At
	case ev.Kind == task.KindPublished:
		if p, ok := read[task.Published](ev); ok {
			t.publish(p)
		}
		return
	case ev.EventID == 0:
		t.question(ev)
		return
	default:
		return
	}
	t.poke()
}

// read reads the payload of an event.
func read[T any](ev task.Event) (v T, ok bool) {
	return v, json.Unmarshal(ev.Params, &v) == nil
}

// told takes what came of a turn. One that failed ends the run; an interrupt ends the
// turn only. t.mu is held.
func (t *turns) told(turn task.Turn) {
	t.last = &turn
	if !turn.OK && turn.Category != task.TurnCancelled && t.final == nil {
		t.final = &final{state: task.StateFailed, message: turn.Error, now: true}
	}
}

// publish keeps account of what was published. t.mu is held.
func (t *turns) publish(p task.Published) {
	same := func(q task.Published) bool {
		return q.Org == p.Org && q.Name == p.Name && q.Branch == p.Branch && q.Pull == p.Pull
	}
	if i := slices.IndexFunc(t.published, same); i >= 0 {
		t.published[i] = p
		return
	}
	t.published = append(t.published, p)
}

// question keeps account of what the host itself has asked people. t.mu is held.
func (t *turns) question(ev task.Event) {
	switch {
	case ev.Method == wire.EventPermitted:
		answered, _ := read[struct{ RequestID string }](ev)
		t.asked = slices.DeleteFunc(t.asked, func(id string) bool { return id == answered.RequestID })
	case ev.Kind == task.KindPermission:
		if p, ok := read[task.Permission](ev); ok {
			t.asked = append(t.asked, p.RequestID)
		}
	}
}

// unanswered are the questions that another host has asked, which died with it.
func (t *turns) unanswered() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.asked)
}

func (t *turns) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// end ends the run in order. The first end stands, and a later one may hurry it.
func (t *turns) end(state task.State, message string, now bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.final == nil {
		t.final = &final{state: state, message: message}
	}
	t.final.now = t.final.now || now
	t.poke()
}

// leave notes that the work is cancelled: when the turn that is going on has ended, so
// does the agent.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaving = true
	t.poke()
}

// said notes whether somebody may still say something at this process's own terminal.
func (t *turns) said(talking bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.talking = talking
	t.poke()
}

// saying notes a message that is about to be said to the agent.
func (t *turns) saying(in task.Input) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(in.Schema) > 0 {
		t.schemas[in.ID] = in.Schema
	}
}

// recall looks up what was said to the agent before this runner took the run over.
func (t *turns) recall(ctx context.Context) error {
	said, err := t.x.runner.c.Store.Messages(ctx, t.x.spec.Run)
	if err != nil {
		return err
	}
	for _, in := range said {
		t.saying(in)
	}
	return nil
}

// mind judges turns as they end, until ctx does.
func (t *turns) mind(ctx context.Context) {
	tick := time.NewTicker(endPause)
	defer tick.Stop()
	for {
		t.judge(ctx, true)
		if t.done(ctx) {
			t.endAgent(ctx)
		}
		if t.held() {
			t.x.limits.active()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-tick.C:
		}
	}
}

// judge does what is to be done about the turns that have ended. Where the agent is over,
// a reply that cannot be used is not asked for again.
func (t *turns) judge(ctx context.Context, again bool) {
	t.judging.Lock()
	defer t.judging.Unlock()
	for _, ended := range t.pending() {
		switch {
		case ended.Turn != nil:
			t.x.story.tell(task.KindTurn, *ended.Turn)
		case again && t.mayAsk(ended.RetryID):
			in := task.Input{ID: ended.RetryID, Kind: task.InputMessage, Text: ended.Retry, Schema: ended.Schema}
			if _, err := t.x.runner.c.Store.AddInput(ctx, t.x.spec.Run, in); err != nil && ctx.Err() == nil {
				t.x.story.notice("error", "the agent was not asked again: "+err.Error())
			}
		default:
			t.x.story.tell(task.KindTurn, task.Turn{
				Number: ended.Number, MessageID: ended.MessageID, Attempts: ended.Past.Replies,
				Category: task.TurnError, Error: "the agent could not be asked again for a reply that can be used",
			})
		}
	}
}

func (t *turns) pending() []*reply.Ended {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tracker.Pending()
}

// mayAsk reports whether a reply may be asked for again: not when the run is being ended,
// and not with words that were refused.
func (t *turns) mayAsk(retry string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.leaving && !t.over[retry]
}

// schema is what the reply to a message must look like; nil: anything will do. What the
// sandbox says about it does not count. t.mu is held.
func (t *turns) schema(message string) *reply.Schema {
	raw := t.x.spec.Schema
	if message != "" {
		raw = t.schemas[message]
	}
	if len(raw) == 0 {
		return nil
	}
	s, err := reply.Compile(raw)
	if err != nil {
		return nil // it was checked before it was recorded
	}
	return s
}

// done reports whether there is nothing more for the agent to do.
func (t *turns) done(ctx context.Context) bool {
	if done, sure := t.decided(); sure {
		return done
	}
	if waiting, err := t.waiting(ctx); waiting || err != nil {
		return false
	}
	done, sure := t.decided() // a message may have had its turn meanwhile
	return done || !sure
}

// decided is what there is to say about that without a look at the messages. It is not
// sure where these decide.
func (t *turns) decided() (done, sure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current, _ := t.tracker.Current()
	spec := t.x.spec
	switch {
	case t.final != nil && t.final.now:
		return true, true
	case t.leaving:
		return current == 0, true
	case current > 0, !t.over[""], len(t.tracker.Pending()) > 0: // at work, or about to be
		return false, true
	case t.final != nil && !t.yields(t.final):
		return true, true
	case spec.Session, t.talking, t.following, spec.Mode == task.ModeInteractive && spec.Detached: // it stays
		return false, true
	}
	return false, false
}

// waiting reports whether a message has not had its turn yet.
func (t *turns) waiting(ctx context.Context) (bool, error) {
	said, err := t.x.runner.c.Store.Messages(ctx, t.x.spec.Run)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, in := range said {
		if !t.over[in.ID] {
			return true, nil
		}
	}
	return false, nil
}

// endAgent ends the agent's session; its last frame then ends the following.
func (t *turns) endAgent(ctx context.Context) {
	c, err := t.x.runner.Client(t.x.spec.Run)
	if err != nil {
		return // no link at the moment
	}
	bounded, cancel := context.WithTimeout(ctx, deliverBound)
	defer cancel()
	err = c.Send(bounded, task.Input{Kind: task.InputCancel})
	if err != nil && ctx.Err() == nil && !errors.Is(err, agent.ErrLost) {
		t.x.story.notice("warn", "end the agent: "+err.Error())
	}
}

// verdict says how the run ended as far as its turns decide it: an error, or an end that
// somebody asked for.
func (t *turns) verdict() (task.State, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.final != nil && t.final.state == task.StateFailed:
		return task.StateFailed, t.failure(t.final.message)
	case t.final != nil:
		return t.final.state, nil
	case t.last != nil && !t.last.OK:
		return task.StateFailed, t.failure(t.last.Error)
	case t.last != nil:
		return task.StateCompleted, nil
	}
	return "", nil
}

// failure is the error of a run that its agent, or somebody for it, calls failed.
func (t *turns) failure(message string) error {
	if message == "" {
		message = "the run was ended as failed"
	}
	return errs.New("runner.turns", errs.TaskFailed, fmt.Sprintf("insightscli logs %s", t.x.spec.Run.Short()), "%s", message)
}
