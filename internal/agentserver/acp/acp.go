// Package acp is the driver of agent "acp:CMD": any program that speaks the Agent Client
// Protocol, version 1, over its standard streams. CMD is a command line in the words of
// a shell, without a shell: quotes and backslashes, no variables.
//
// The agent's session updates go into the journal as they are, in the order in which it
// wrote them, before the end of the turn that they belong to. They do not pass through
// the library (coder/acp-go-sdk does the requests), which would drop the connection when
// the journal holds the agent back, and would read them as a version of the protocol
// that the agent need not have. What an agent says beyond the protocol is passed over,
// and what it asks for beyond it is answered with "method not found".
//
// The agent works in its fullest mode unless the run names another. It gets no access to
// files or terminals by way of the protocol: it is where they are.
//
// An agent that dies fails its turn. The next prompt starts it again, in the session of
// before if it can load one.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Prefix begins the agent's name in a wire.Start; its command line follows.
const Prefix = "acp:"

// times are the bounds of what an agent is waited for.
type times struct {
	start  time.Duration // until there is a session; some agents load their parts for long
	cancel time.Duration // until a cancelled turn is over, before the agent is ended
	grace  time.Duration // until it ends by itself, and after a signal
}

// New makes the driver; it is an [agentserver.NewDriver].
func New(host *agentserver.Host) agentserver.Driver {
	return &driver{host: host, times: times{start: 2 * time.Minute, cancel: 5 * time.Second, grace: 2 * time.Second}}
}

var _ agentserver.NewDriver = New

type driver struct {
	host  *agentserver.Host
	times times
	start wire.Start
	argv  []string
	asks  atomic.Int64 // requests for leave so far

	mu        sync.Mutex // guards the rest
	agent     *agent     // nil: none runs
	session   string     // id of the newest session, "" before the first
	offer     offered    // of that session
	full      bool       // it is in the agent's mode of full access
	turn      *turn      // going on
	cancelled bool       // before the first turn
	begun     bool       // there was a turn
	closed    bool
}

// turn is one prompt that is going on.
type turn struct {
	cancelled chan struct{} // closed by Cancel and Close
	over      chan struct{}
	once      sync.Once
}

func (t *turn) cancel() { t.once.Do(func() { close(t.cancelled) }) }

func (t *turn) isCancelled() bool {
	select {
	case <-t.cancelled:
		return true
	default:
		return false
	}
}

// Start implements agentserver.Driver.
func (d *driver) Start(ctx context.Context, start wire.Start) error {
	command, ok := strings.CutPrefix(start.Agent, Prefix)
	if !ok {
		return fmt.Errorf("agent %q is not one of %sCMD", start.Agent, Prefix)
	}
	argv, err := words(command)
	switch {
	case err != nil:
		return fmt.Errorf("command of agent %q: %w", start.Agent, err)
	case len(argv) == 0 || argv[0] == "":
		return fmt.Errorf("agent %q has no command", start.Agent)
	}
	if start.Dir == "" {
		start.Dir = d.host.Dir
	}
	d.start, d.argv = start, argv
	_, err = d.running(ctx)
	return err
}

// running returns the agent, which it starts unless it runs.
func (d *driver) running(ctx context.Context) (*agent, error) {
	d.mu.Lock()
	a, session := d.agent, d.session
	d.mu.Unlock()
	switch {
	case a != nil && !a.lost():
		return a, nil
	case a != nil:
		a.close(d.times.grace)
	}
	a, err := d.launch(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.agent = a
	closed := d.closed
	d.mu.Unlock()
	if closed {
		err = errClosed
	} else {
		session, err = d.openInTime(ctx, a, session)
	}
	if err != nil {
		a.close(d.times.grace)
		return nil, fmt.Errorf("agent %s: %w", d.argv[0], err)
	}
	d.mu.Lock()
	d.session = session
	d.mu.Unlock()
	return a, nil
}

var errClosed = errors.New("it is closed")

// openInTime is open, bounded.
func (d *driver) openInTime(ctx context.Context, a *agent, before string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, d.times.start)
	defer cancel()
	// A request waits for the agent to read it, whatever its context says.
	stop := context.AfterFunc(bounded, func() { a.close(d.times.grace) })
	defer stop()
	session, err := d.open(bounded, a, before)
	switch {
	case err == nil:
		return session, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case bounded.Err() != nil:
		return "", fmt.Errorf("it has not made a session within %s%s", d.times.start, a.lastWords())
	}
	return "", a.explain(err)
}

// Prompt implements agentserver.Driver.
func (d *driver) Prompt(ctx context.Context, text string, schema json.RawMessage) (agentserver.Turn, error) {
	t := d.begin()
	defer d.end(t)
	if t.isCancelled() {
		return cancelled(), nil
	}
	starting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-t.cancelled:
			stop() // of no effect once the agent runs
		case <-t.over:
		}
	}()
	a, err := d.running(starting)
	switch {
	case t.isCancelled():
		return cancelled(), nil
	case err != nil:
		return agentserver.Turn{}, err
	}
	outcome := d.prompt(ctx, a, withSchema(text, schema))
	if t.isCancelled() {
		return cancelled(), nil
	}
	return agentserver.Turn{Outcome: outcome}, nil
}

func cancelled() agentserver.Turn {
	return agentserver.Turn{Outcome: wire.Outcome{StopReason: agentserver.StopCancelled}}
}

func (d *driver) begin() *turn {
	t := &turn{cancelled: make(chan struct{}), over: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.cancelled && !d.begun {
		t.cancel()
	}
	d.turn, d.begun = t, true
	return t
}

func (d *driver) end(t *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn = nil
	close(t.over)
}

// Cancel implements agentserver.Driver. An agent that goes on is ended; the next prompt
// starts it again.
func (d *driver) Cancel(ctx context.Context) {
	d.mu.Lock()
	t, a, session := d.turn, d.agent, d.session
	d.cancelled = true
	d.mu.Unlock()
	if t == nil {
		return
	}
	t.cancel()
	if a != nil && session != "" {
		go a.cancel(context.WithoutCancel(ctx), session) // ends with the agent at the latest
	}
	timer := time.NewTimer(d.times.cancel)
	defer timer.Stop()
	select {
	case <-t.over:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	d.host.Log.Warn("the agent does not end its turn and is ended", "agent", d.argv[0])
	if a != nil {
		a.close(d.times.grace)
	}
}

// Close implements agentserver.Driver.
func (d *driver) Close(ctx context.Context) {
	d.mu.Lock()
	t, a := d.turn, d.agent
	d.closed = true
	d.mu.Unlock()
	if t != nil {
		t.cancel()
	}
	if a != nil {
		a.close(d.times.grace)
	}
	if t == nil {
		return
	}
	select {
	case <-t.over:
	case <-ctx.Done():
	}
}
