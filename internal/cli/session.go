package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

func newSessionCmd(a *app) *cobra.Command {
	return newGroup("session", "Talk to an agent in several turns, with checked replies",
		newSessionStartCmd(a, nil), newSessionSendCmd(a, nil), newSessionEndCmd(a, nil), newSessionListCmd(a, nil),
		newSessionRunCmd(a, nil), newSessionDemoCmd(a, nil))
}

// notOfSessions are the flags of `run` that a session has no use for: it is always the
// background runner's, and what it prints is replies.
func notOfSessions() []string {
	return []string{"detach", "no-start", "start", "exit-code", "dry-run", "quiet", "json", "plain", "mode"}
}

// addSessionFlags binds those flags of `run` that describe a session.
func (o *runOptions) addSessionFlags(f *pflag.FlagSet, without ...string) {
	f.SortFlags = false
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.addFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(append(notOfSessions(), without...), flag.Name) {
			f.AddFlag(flag)
		}
	})
}

// dialogue is a session of the background runner, seen from outside.
type dialogue struct {
	app   *app
	state *state
	rec   journal.Record
}

// begin records a session and has the background runner take it.
func (a *app) begin(ctx context.Context, p plan) (*dialogue, error) {
	p.spec.Session, p.spec.Detached = true, true
	if err := a.ready(ctx, p.config, p.spec); err != nil {
		return nil, err
	}
	h, err := a.host(ctx, p.config)
	if err != nil {
		return nil, err
	}
	if err := h.submit(ctx, p); err != nil {
		return nil, err
	}
	d := &dialogue{app: a, state: h.state}
	if d.rec, err = h.state.store.Run(ctx, p.spec.Run); err != nil {
		return d, err
	}
	return d, h.state.knock(ctx)
}

// openSession finds a live session.
func (a *app) openSession(ctx context.Context, name string) (*dialogue, error) {
	s, rec, err := a.openRun(ctx, name)
	if err != nil {
		return nil, err
	}
	id := rec.Spec.Run.Short()
	switch {
	case !rec.Spec.Session:
		return nil, errs.New("cli.session", errs.Conflict, "insightscli session list", "run %s is not a session", id)
	case rec.State.Terminal():
		return nil, errs.New("cli.session", errs.Conflict, "insightscli show "+id, "session %s is over (%s)", id, rec.State)
	}
	return &dialogue{app: a, state: s, rec: rec}, nil
}

// id is the id of the session.
func (d *dialogue) id() task.ID { return d.rec.Spec.Run }

// say records a message and waits for what comes of it.
func (d *dialogue) say(ctx context.Context, text string, schema json.RawMessage) (task.Turn, error) {
	in := task.Input{ID: string(task.NewID()), Kind: task.InputMessage, Text: text, Schema: schema}
	if _, err := d.state.store.AddInput(ctx, d.id(), in); err != nil {
		return task.Turn{}, err
	}
	if err := d.state.knockFor(ctx, d.rec); err != nil {
		return task.Turn{}, err
	}
	return d.turn(ctx, in.ID)
}

// errTold ends the reading of a log.
var errTold = errors.New("what was waited for is there")

// outcomeOf is what the log says of one message; that of the session's own prompt has the
// empty id.
type outcomeOf struct {
	messageID string
	turn      task.Turn
	refused   string // why nobody took the message
	result    task.Result
}

// visit implements journal.Visit.
func (w *outcomeOf) visit(_ []byte, ev task.Event) error {
	switch ev.Kind {
	case task.KindTurn:
		var t task.Turn
		if json.Unmarshal(ev.Params, &t) == nil && t.MessageID == w.messageID {
			w.turn = t
			return errTold
		}
	case task.KindNotice:
		var n task.Notice
		if json.Unmarshal(ev.Params, &n) == nil && n.MessageID != "" && n.MessageID == w.messageID {
			w.refused = n.Message
			return errTold
		}
	case task.KindFinished:
		_ = json.Unmarshal(ev.Params, &w.result) // what cannot be read is an end without a reason
	}
	return nil
}

// turn waits for the outcome of a message.
func (d *dialogue) turn(ctx context.Context, messageID string) (task.Turn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() { // a session whose process dies goes on in the background runner
		defer close(watched)
		if _, err := d.state.await(ctx, d.id()); err != nil {
			cancel(err)
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
	}()
	w := outcomeOf{messageID: messageID}
	err := d.state.store.Tail(ctx, d.rec, 0, w.visit)
	switch {
	case w.refused != "":
		return w.turn, errs.New("cli.session", errs.Conflict, "insightscli show "+d.id().Short(), "%s", w.refused)
	case errors.Is(err, errTold):
		return w.turn, nil
	case ctx.Err() != nil:
		return w.turn, context.Cause(ctx)
	case err != nil:
		return w.turn, err
	}
	return w.turn, d.over(w.result)
}

// over says why a session ended before the turn that was waited for.
func (d *dialogue) over(r task.Result) error {
	kind := errs.Kind(r.Kind)
	if r.Error == "" || kind == "" {
		return errs.New("cli.session", errs.Conflict, "insightscli show "+d.id().Short(),
			"session %s ended before the turn was over", d.id().Short())
	}
	return errs.New("cli.session", kind, r.Hint, "%s", r.Error)
}

// end ends the session and waits until that is done.
func (d *dialogue) end(ctx context.Context, state task.State, reason string) (journal.Record, error) {
	in := task.Input{ID: string(task.NewID()), Kind: task.InputEnd, Value: string(state), Text: reason}
	_, err := d.state.store.AddInput(ctx, d.id(), in)
	if err != nil && errs.KindOf(err) != errs.Conflict { // it ended meanwhile
		return d.rec, err
	}
	if err := d.state.knockFor(ctx, d.rec); err != nil {
		return d.rec, err
	}
	ctx, cancel := within(ctx, cancelBound, "insightscli ps", "ended, and still being cleaned up after %s", cancelBound)
	defer cancel()
	return d.state.await(ctx, d.id())
}

// abandon ends a session whose first turn nobody will see, also after an interrupt.
func (d *dialogue) abandon(ctx context.Context, reason error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	in := task.Input{ID: string(task.NewID()), Kind: task.InputEnd, Value: string(task.StateFailed), Text: oneLine(reason.Error())}
	if _, err := d.state.store.AddInput(ctx, d.id(), in); err != nil && errs.KindOf(err) != errs.Conflict {
		fmt.Fprintf(d.app.streams.Err, "note: session %s could not be ended: %s\n", d.id().Short(), oneLine(err.Error()))
	}
}

// sessionTurn is what --json prints of a turn.
type sessionTurn struct {
	Session task.ID   `json:"session"`
	Turn    task.Turn `json:"turn"`
}

// printTurn prints a reply: the value as it was said, or the text. A turn that failed is
// an error, and with it the session has failed.
func (a *app) printTurn(run task.ID, turn task.Turn, asJSON bool) error {
	switch {
	case asJSON:
		enc := json.NewEncoder(a.streams.Out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(sessionTurn{run, turn}); err != nil {
			return err
		}
	case turn.OK:
		text := turn.Text
		if turn.Value != nil {
			text = string(turn.Value)
		}
		if a.streams.OutTTY {
			text = cleanLines(text)
		}
		if _, err := fmt.Fprintln(a.streams.Out, strings.TrimRight(text, "\n")); err != nil {
			return err
		}
	}
	if turn.Degraded {
		fmt.Fprintf(a.streams.Err, "warning: the reply fits only because it says nothing (after %d attempts)\n", turn.Attempts)
	}
	if turn.OK {
		return nil
	}
	return errs.New("cli.session", errs.TaskFailed, "insightscli logs "+run.Short(), "the turn failed (%s): %s", turn.Category, turn.Error)
}

// cleanLines takes out of a text what could steer a terminal.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = render.Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
