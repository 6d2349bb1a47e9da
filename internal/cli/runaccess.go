package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/task"
)

// Operations of the control socket of a process that carries out runs.
const (
	opOpen    = "open"    // a stream to a service of a run's PID 1; bytes both ways follow
	opCapture = "capture" // take out now what a run has changed; one line of JSON follows
)

const (
	// enterBound is how long a command waits for a run that changes hands, or whose
	// sandbox is being made.
	enterBound = 5 * time.Second
	enterPause = 50 * time.Millisecond
	// goneBound is how long PID 1 may take to end a service whose asker has gone.
	goneBound = 10 * time.Second
)

// serve answers other processes that want something of the runs of this one, until
// ctx is done.
func (p *process) serve(ctx context.Context, ready func()) error {
	return p.owner.Serve(ctx, p.handlers(), ready)
}

// handlers are the operations that concern single runs.
func (p *process) handlers() map[string]owner.Handler {
	return map[string]owner.Handler{
		opOpen: openHandler(func(run task.ID) (streams, error) { return p.runner.Client(run) }),
		opCapture: func(ctx context.Context, req owner.Request, conn net.Conn) error {
			repos, err := p.runner.Capture(ctx, req.Run)
			if err != nil {
				return err
			}
			return json.NewEncoder(conn).Encode(repos)
		},
	}
}

// streams opens streams to services of one sandbox.
type streams interface {
	Open(ctx context.Context, service string) (net.Conn, error)
}

// openHandler opens a service of a run's sandbox for another process.
func openHandler(client func(run task.ID) (streams, error)) owner.Handler {
	// Not the events and not the calls: they are the owner's own.
	open := []string{wire.ServiceExec, wire.ServiceArchive}
	return func(ctx context.Context, req owner.Request, conn net.Conn) error {
		if !slices.Contains(open, req.Service) {
			return errs.New("cli.open", errs.Conflict, "", "the service %q is not opened for others", req.Service)
		}
		c, err := client(req.Run)
		if err != nil {
			return err
		}
		stream, err := c.Open(ctx, req.Service)
		if err != nil {
			return err
		}
		proxy(conn, stream)
		return nil
	}
}

// proxy carries bytes between an asker and a stream until the stream has ended. When
// the asker goes away the stream is closed, by which PID 1 ends what it does for it.
func proxy(asker, stream net.Conn) {
	var in sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(stream, asker) // either end may break: then both are closed
		_ = stream.SetReadDeadline(time.Now().Add(goneBound))
		_ = stream.Close()
	})
	_, _ = io.Copy(asker, stream)
	_ = asker.Close() // ends the other direction
	_ = stream.Close()
	in.Wait()
}

// errOver is wrapped when a command wants into the sandbox of a run that is over.
var errOver = errors.New("the run is over")

// enter returns the way into the sandbox of a run: through the process that owns the
// run, or straight into a sandbox that was kept. Leave it with the function.
func (s *state) enter(ctx context.Context, rec journal.Record) (agent.Remote, func(), error) {
	if rec.State.Terminal() {
		return s.enterKept(ctx, rec)
	}
	run := rec.Spec.Run
	return agent.Remote{Open: func(ctx context.Context, service string) (net.Conn, error) {
		return s.ask(ctx, run, owner.Request{Op: opOpen, Run: run, Service: service})
	}}, func() {}, nil
}

// ask asks the owner of a run for something. A run that is changing hands, and one
// whose sandbox is being made, is waited for, for a while.
func (s *state) ask(ctx context.Context, run task.ID, req owner.Request) (net.Conn, error) {
	deadline := time.Now().Add(enterBound)
	for {
		conn, again, err := s.askOnce(ctx, run, req)
		if err == nil || !again || ctx.Err() != nil || time.Now().After(deadline) {
			return conn, err
		}
		if err := pause(ctx, enterPause); err != nil {
			return nil, err
		}
	}
}

// askOnce asks whoever owns the run now. again tells whether it may help to ask
// again.
func (s *state) askOnce(ctx context.Context, run task.ID, req owner.Request) (conn net.Conn, again bool, err error) {
	rec, err := s.store.Run(ctx, run)
	if err != nil {
		return nil, false, err
	}
	who := s.ownerOf(rec)
	switch {
	case rec.State.Terminal():
		return nil, false, notLive(run, "%w (%s)", errOver, rec.State)
	case who.State == ownerWaiting:
		return nil, false, errs.New("cli.enter", errs.Unavailable, "insightscli run --start "+run.Short(),
			"run %s was not started yet", run.Short())
	case who.State == string(owner.StateForeign):
		return nil, false, errs.New("cli.enter", errs.Unavailable, "run the command on that machine",
			"run %s belongs to a process on %s", run.Short(), who.Host)
	case who.State != string(owner.StateAlive):
		return nil, true, notLive(run, "nobody carries it out")
	}
	conn, err = owner.Dial(ctx, s.dir, rec.Owner, req)
	switch kind := errs.KindOf(err); {
	case err == nil:
		return conn, false, nil
	case kind == errs.Conflict, kind == errs.Unavailable:
		return nil, true, notLive(run, "%w", err)
	}
	return nil, false, err
}

func notLive(run task.ID, format string, args ...any) error {
	return errs.New("cli.enter", errs.Unavailable, "insightscli show "+run.Short(),
		"run %s has no live sandbox: %w", run.Short(), fmt.Errorf(format, args...))
}

// enterKept opens a link of our own to the sandbox of a run that is over, if it was
// kept.
func (s *state) enterKept(ctx context.Context, rec journal.Record) (agent.Remote, func(), error) {
	run := rec.Spec.Run
	if !kept(rec) {
		return agent.Remote{}, nil, notLive(run, "%w (%s)", errOver, rec.State)
	}
	sealed, err := s.store.Secrets(ctx, run)
	if err != nil {
		return agent.Remote{}, nil, err
	}
	if sealed[steps.SecretLinkKey] == nil {
		return agent.Remote{}, nil, notLive(run, "the one that was kept is gone")
	}
	key, err := seal.Open(filepath.Join(s.dir, keyFile))
	if err != nil {
		return agent.Remote{}, nil, err
	}
	st := &steps.Steps{Provider: s.providers.of, Secrets: &runner.Secrets{Key: key, Store: s.store}}
	box, err := st.Open(ctx, rec.Spec, sandbox.ID(rec.Result.Sandbox))
	if errors.Is(err, sandbox.ErrNotFound) {
		return agent.Remote{}, nil, notLive(run, "the one that was kept is gone")
	}
	if err != nil {
		return agent.Remote{}, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, enterBound)
	defer cancel()
	c, err := st.Connect(ctx, run, box, nil)
	if err != nil {
		return agent.Remote{}, nil, notLive(run, "%w", err)
	}
	return agent.Remote{Open: c.Open}, func() { _ = c.Close() }, nil
}

// kept reports whether the sandbox of a run that is over was left for a look.
func kept(rec journal.Record) bool {
	return rec.Spec.Keep && rec.Result != nil && rec.Result.Sandbox != ""
}

// capture has the owner of a live run take out what was changed so far.
func (s *state) capture(ctx context.Context, rec journal.Record) ([]task.RepoResult, error) {
	run := rec.Spec.Run
	conn, err := s.ask(ctx, run, owner.Request{Op: opCapture, Run: run})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // only read from
	var repos []task.RepoResult
	if err := json.NewDecoder(conn).Decode(&repos); err != nil {
		return nil, errs.New("cli.capture", errs.Unavailable, "run the command again", "the owner of the run did not answer: %w", err)
	}
	return repos, nil
}

// The rhythm of waiting for the end of a run.
const (
	awaitPause = 100 * time.Millisecond
	adoptPause = 2 * time.Second
)

// await waits until a run is over. If its process dies meanwhile the background
// runner is started for it.
func (s *state) await(ctx context.Context, run task.ID) (journal.Record, error) {
	looked := time.Now()
	for {
		rec, err := s.store.Run(ctx, run)
		switch {
		case ctx.Err() != nil:
			return rec, context.Cause(ctx)
		case err != nil, rec.State.Terminal():
			return rec, err
		}
		if time.Since(looked) > adoptPause {
			looked = time.Now()
			if err := s.knockFor(ctx, rec); err != nil {
				return rec, err
			}
		}
		if err := pause(ctx, awaitPause); err != nil {
			return rec, err
		}
	}
}

// knockFor starts the background runner if nobody carries out the run.
func (s *state) knockFor(ctx context.Context, rec journal.Record) error {
	if !background.Ownerless(s.dir, rec) {
		return nil
	}
	return s.knock(ctx)
}

// pause waits for d, or returns why ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// within bounds ctx by d, 0 being no bound; the cause says that something still
// goes on, which is exit code 8.
func within(ctx context.Context, d time.Duration, hint, format string, args ...any) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d, errs.New("cli.wait", errs.Running, hint, format, args...))
}
