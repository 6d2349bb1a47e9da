package agentserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// The readiness of a session, as wire.Health has it.
const (
	starting = "starting"
	ready    = "ready"
	failed   = "failed"
)

const (
	// startWait is how long MethodStart waits for the session, so that a quick agent
	// needs no second question.
	startWait = time.Second
	// closeTime bounds Cancel and Close of a driver: it has 5 s for each of three
	// signals.
	closeTime = 16 * time.Second
	// maxQueued bounds the messages that wait for their turn.
	maxQueued = 500
)

// session is the one session of a server: one driver, one turn at a time.
type session struct {
	drivers map[string]NewDriver
	host    *Host
	log     *slog.Logger
	journal *journal
	masked  func(string) string // masks what is logged of the agent's words
	running sync.WaitGroup      // the session's goroutine and its cancellations

	steering chan struct{} // of one: who hands words to the driver

	mu        sync.Mutex // guards the rest
	began     time.Time  // zero: not started
	readiness string
	boot      boot
	err       error // why it failed
	initMs    float64
	oneShot   bool   // a plain command: it takes no messages
	driver    Driver // set when ready
	active    bool   // a turn is going on
	canceling bool
	closing   bool // no further turn begins
	over      bool // FrameDone has been written
	changed   chan struct{}
	queue     []*turn
	inbox     inbox

	driverClosed bool
}

func newSession(host *Host, drivers map[string]NewDriver) *session {
	s := &session{
		masked: func(text string) string { return text },
		host:   host, drivers: drivers, log: host.Log, journal: host.journal,
		readiness: starting, inbox: newInbox(), steering: make(chan struct{}, 1),
	}
	s.boot.enter(wire.PhaseWaiting, time.Now())
	host.phase = s.enterPhase
	return s
}

// start begins the session and waits a moment for it to be ready. ctx bounds the
// wait, life the session.
func (s *session) start(ctx, life context.Context, st wire.Start) error {
	s.mu.Lock()
	newDriver, known := s.driverOf(st.Agent)
	switch {
	case !s.began.IsZero():
		s.mu.Unlock()
		return fmt.Errorf("the session has been started already")
	case s.closing:
		s.mu.Unlock()
		return errOver
	case !known:
		s.mu.Unlock()
		return fmt.Errorf("this agent server has no driver for agent %q", st.Agent)
	}
	s.began, s.oneShot = time.Now(), len(st.Command) > 0
	s.boot.enter(wire.PhaseSession, s.began)
	s.host.Attended = st.Mode == string(task.ModeInteractive)
	s.running.Go(func() { s.run(life, newDriver(s.host), st) })
	s.mu.Unlock()

	wait := time.NewTimer(startWait)
	defer wait.Stop()
	for {
		s.mu.Lock()
		pending, changed := s.readiness == starting, listen(&s.changed)
		s.mu.Unlock()
		if !pending {
			return nil // a failure is told by Health, with its code
		}
		select {
		case <-changed:
		case <-wait.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// driverOf finds the driver of an agent. One whose name ends in a colon drives every
// agent that begins so.
func (s *session) driverOf(agent string) (NewDriver, bool) {
	if d, ok := s.drivers[agent]; ok {
		return d, true
	}
	family, _, ok := strings.Cut(agent, ":")
	d, known := s.drivers[family+":"]
	return d, ok && known
}

// run is the session's goroutine, from the driver's start to FrameDone.
func (s *session) run(ctx context.Context, d Driver, st wire.Start) {
	if err := d.Start(ctx, st); err != nil {
		s.log.Error("session", "agent", st.Agent, "err", s.masked(err.Error()))
		s.fail(err)
		s.finish(wire.Outcome{StopReason: StopError, Error: err.Error()})
		return
	}
	s.ready(d, st)
	outcome := wire.Outcome{StopReason: StopEndTurn}
	for t := s.next(ctx); t != nil; t = s.next(ctx) {
		result := s.prompt(ctx, d, t, st.TurnTime)
		outcome = result.Outcome
		s.endTurn(t, result)
		if result.Last {
			break
		}
	}
	s.closeDriver(context.WithoutCancel(ctx))
	s.finish(outcome)
}

// closeDriver closes the driver if there is one, once.
func (s *session) closeDriver(ctx context.Context) {
	s.mu.Lock()
	d, closed := s.driver, s.driverClosed
	s.driverClosed = d != nil
	s.closing = true
	s.mu.Unlock()
	if d == nil || closed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	d.Close(ctx)
}

func (s *session) ready(d Driver, st wire.Start) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driver, s.readiness = d, ready
	s.boot.settled = time.Now()
	s.boot.enter("", s.boot.settled)
	s.initMs = ms(s.boot.settled.Sub(s.began))
	s.log.Info("session ready", "agent", st.Agent, "ms", s.initMs)
	if st.Prompt != "" || len(st.Command) > 0 {
		first := &turn{text: st.Prompt, schema: st.Schema, done: make(chan struct{})}
		s.queue = append([]*turn{first}, s.queue...) // before what was said while the agent started
	}
	s.active = len(s.queue) > 0
	wake(&s.changed)
}

func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readiness, s.err = failed, err
	s.boot.settled = time.Now()
	s.boot.enter(s.boot.phase, s.boot.settled) // the time of the one that failed counts too
	wake(&s.changed)
}

// next waits for the next prompt; nil means that the session ends.
func (s *session) next(ctx context.Context) *turn {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 && !s.closing {
			t := s.queue[0]
			s.queue = s.queue[1:]
			s.active = true
			s.mu.Unlock()
			return t
		}
		closing, changed := s.closing, listen(&s.changed)
		s.mu.Unlock()
		if closing {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// finish writes the last frame and turns away those that still wait.
func (s *session) finish(o wire.Outcome) {
	o.Error = brief(o.Error)
	b, err := json.Marshal(o)
	if err != nil {
		b = []byte(`{"stopReason":"error"}`)
	}
	s.host.flush()
	s.host.put(wire.Frame{Type: wire.FrameDone, Data: b})
	s.log.Info("session over", "outcome", s.masked(string(b)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.over, s.closing = false, true, true
	for _, t := range s.queue {
		t.err = errOver
		s.inbox.ended(t)
		close(t.done)
	}
	s.queue = nil
	wake(&s.changed)
}

// cancel ends the turn that is going on, without waiting for it. A second call while
// the first is at work changes nothing.
func (s *session) cancel(life context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driver == nil || !s.active || s.canceling || s.over {
		return
	}
	s.canceling = true
	d := s.driver
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(life, closeTime)
		defer cancel()
		d.Cancel(ctx)
		s.mu.Lock()
		s.canceling = false
		s.mu.Unlock()
	})
}

// close ends the session and returns when FrameDone has been written, or with ctx.
func (s *session) close(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	begun := !s.began.IsZero()
	wake(&s.changed)
	s.mu.Unlock()
	s.closeDriver(ctx)
	for begun {
		s.mu.Lock()
		over, changed := s.over, listen(&s.changed)
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// isActive reports whether a turn or a command is going on.
func (s *session) isActive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// brief makes one line of at most 1 KiB of an agent's last words.
func brief(text string) string {
	const limit = 1 << 10
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
