package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/task"
)

// IdleEnd is how long a runner that a command started stays after its last run.
const IdleEnd = 30 * time.Second

const (
	// lookPause is how often state.db is asked for runs that nobody owns.
	lookPause = 2 * time.Second
	// retryPause is the wait before a run that could not be recorded is tried again.
	retryPause = 30 * time.Second
)

// Operations of the control socket.
const (
	OpKnock  = "knock"  // look for work now; the body is the version of who knocks
	OpStay   = "stay"   // as knock, and do not end without work
	OpStatus = "status" // writes one [Status] line
	OpStop   = "stop"   // end; refused with live runs
)

// executor carries out one run that this process owns.
type executor interface {
	Execute(ctx context.Context, run task.ID, inbox <-chan task.Input, screen task.Sink) (task.Result, error)
}

// Config is what the runner needs.
type Config struct {
	Dir      string // the state directory
	Version  string // of the program
	Store    *journal.Store
	Owner    *owner.Owner
	Executor executor
	// Handlers are the operations that concern single runs, by name.
	Handlers map[string]owner.Handler
	// Idle ends the runner after so long without a run; 0 never does.
	Idle time.Duration
	// Report takes what went wrong with a run beyond its own Result.
	Report func(run task.ID, err error)
}

// Status is what a runner says of itself.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Runs    []task.ID `json:"runs"`
}

// server is one background runner at work.
type server struct {
	c     Config
	knock chan struct{} // capacity 1
	stop  context.CancelCauseFunc
	lock  *os.File
	held  os.FileInfo // of the lock's file

	mu      sync.Mutex    // guards what follows; held while a run is claimed, too
	idle    time.Duration // Config.Idle, until somebody wants it to stay
	live    map[task.ID]bool
	failed  map[task.ID]time.Time // when a run of this runner could not be recorded
	leaving bool                  // takes no more runs
	runs    sync.WaitGroup
}

// Serve is the background runner: it returns when it was idle for long enough, was
// asked to stop, or ctx is done; runs that are going on then are left to the next
// runner. ready is called once it can be reached. A second runner in the same state
// directory is refused with a Conflict that wraps [ErrTaken].
func Serve(ctx context.Context, c Config, ready func()) error {
	lock, err := take(c.Dir, c.Owner.Info)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the kernel would, too
	held, err := lock.Stat()
	if err != nil {
		return fmt.Errorf("become the background runner: %w", err)
	}

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &server{
		c: c, stop: stop, lock: lock, held: held, idle: c.Idle, knock: make(chan struct{}, 1),
		live: map[task.ID]bool{}, failed: map[task.ID]time.Time{},
	}
	served := make(chan error, 1)
	go func() {
		err := c.Owner.Serve(ctx, s.handlers(), ready)
		stop(runner.ErrAbandoned) // nobody could reach it any more
		served <- err
	}()
	s.work(ctx)
	s.runs.Wait()
	stop(nil)
	return <-served
}

// work takes runs until the runner ends.
func (s *server) work(ctx context.Context) {
	t := time.NewTicker(lookPause)
	defer t.Stop()
	last := time.Now()
	for {
		if !s.mine() {
			s.stop(errs.New("background.Serve", errs.Canceled, "", "the state directory is gone"))
			return
		}
		if busy := s.look(ctx); busy {
			last = time.Now()
		} else if s.over(time.Since(last)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.knock:
		case <-t.C:
		}
	}
}

// look takes every run that is not over and that nobody alive owns, and reports
// whether there is any at work.
func (s *server) look(ctx context.Context) bool {
	recs, err := s.c.Store.Runs(ctx, journal.Filter{Live: true})
	if err != nil && ctx.Err() == nil {
		s.c.Report("", fmt.Errorf("look for runs: %w", err))
	}
	for _, rec := range recs {
		if Ownerless(s.c.Dir, rec) || s.retries(rec) {
			s.takeOver(ctx, rec)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) > 0
}

// retries reports whether a run is one that this runner owns and could not carry out,
// for want of space on the disk say, and has let rest for a while.
func (s *server) retries(rec journal.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, failed := s.failed[rec.Spec.Run]
	return failed && rec.Owner == s.c.Owner.ID && time.Since(since) > retryPause
}

// Ownerless reports whether a run that is not over has no living owner. A run of
// another machine is never taken.
func Ownerless(dir string, rec journal.Record) bool {
	if rec.State.Terminal() {
		return false
	}
	if rec.Owner == "" {
		// A run that is recorded but was never to start yet waits for `run --start`.
		return rec.Spec.Detached || !rec.Started.IsZero()
	}
	alive, err := owner.Alive(dir, rec.Owner)
	return err == nil && !alive
}

// takeOver claims a run and carries it out in a goroutine.
func (s *server) takeOver(ctx context.Context, rec journal.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := rec.Spec.Run
	if s.live[id] || s.leaving {
		return
	}
	ok, err := s.c.Store.Claim(ctx, id, rec.Owner, s.c.Owner.ID)
	if err != nil || !ok {
		return // another one was faster, or the next look tries again
	}
	s.live[id] = true
	delete(s.failed, id)
	s.runs.Go(func() { s.carryOut(ctx, id) })
}

func (s *server) carryOut(ctx context.Context, id task.ID) {
	_, err := s.c.Executor.Execute(ctx, id, nil, task.SinkFunc(func(task.Event) {}))
	failed := err != nil && !errors.Is(err, runner.ErrAbandoned)
	if failed {
		s.c.Report(id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, id)
	if failed {
		s.failed[id] = time.Now()
	}
	s.wake()
}

// mine reports whether the state directory is still the one this runner began in.
// Somebody may have removed it; the sandboxes must not outlive it.
func (s *server) mine() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return true // handed over: the lock is another's
	}
	now, err := os.Stat(filepath.Join(s.c.Dir, lockName))
	return err == nil && os.SameFile(now, s.held)
}

// over reports whether the runner has nothing more to do: it handed over and has
// finished what it owned, or nothing came for long enough.
func (s *server) over(idle time.Duration) bool {
	s.mu.Lock()
	left, end := s.leaving && len(s.live) == 0, s.idle
	s.mu.Unlock()
	return left || end > 0 && idle > end && s.leave(true)
}

// handOver makes room for a runner of another version: this one takes no more runs,
// finishes those it owns, and is not the background runner any more.
func (s *server) handOver() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	err := s.lock.Close()
	if s.leaving {
		err = nil // the second to ask
	}
	s.leaving = true
	return errors.Join(err, errs.New("background.Knock", errs.NotFound, "insightscli start -d",
		"the background runner was version %s and has handed over", s.c.Version))
}

// leave stops the taking of runs unless there is one at work or, with unlessKnocked,
// there may be one to take.
func (s *server) leave(unlessKnocked bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 || unlessKnocked && len(s.knock) > 0 {
		return false
	}
	s.leaving = true
	return true
}

// knocked makes the runner look for work. One that is about to end refuses: the one
// who knocks then starts another.
func (s *server) knocked(req owner.Request) error {
	var version string
	if json.Unmarshal(req.Body, &version) == nil && version != s.c.Version {
		return s.handOver()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return errs.New("background.Knock", errs.NotFound, "insightscli start -d", "the background runner is about to end")
	}
	s.wake()
	return nil
}

// stay makes a runner that would end without work one that stays.
func (s *server) stay(req owner.Request) error {
	if err := s.knocked(req); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == 0 {
		return taken(s.c.Dir)
	}
	s.idle = 0
	return nil
}

func (s *server) wake() {
	select {
	case s.knock <- struct{}{}:
	default:
	}
}

func (s *server) handlers() map[string]owner.Handler {
	all := map[string]owner.Handler{
		OpKnock: func(_ context.Context, req owner.Request, _ net.Conn) error { return s.knocked(req) },
		OpStay:  func(_ context.Context, req owner.Request, _ net.Conn) error { return s.stay(req) },
		OpStatus: func(_ context.Context, _ owner.Request, conn net.Conn) error {
			return json.NewEncoder(conn).Encode(s.status())
		},
		OpStop: func(_ context.Context, _ owner.Request, conn net.Conn) error {
			if !s.leave(false) {
				return errs.New("background.Stop", errs.Conflict, "wait for them, or end them: insightscli stop --cancel",
					"runs are going on: %d", len(s.status().Runs))
			}
			// Answered first: the end closes the connection.
			_, err := conn.Write(nil)
			s.stop(runner.ErrAbandoned)
			return err
		},
	}
	for op, h := range s.c.Handlers {
		all[op] = h
	}
	return all
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{PID: s.c.Owner.PID, Version: s.c.Version, Started: s.c.Owner.Started, Runs: []task.ID{}}
	for id := range s.live {
		st.Runs = append(st.Runs, id)
	}
	return st
}
