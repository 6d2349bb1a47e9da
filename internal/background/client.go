package background

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
	"github.com/Insights/insightscli/internal/owner"
)

// ErrTaken is wrapped when the state directory has a background runner already.
var ErrTaken = errors.New("a background runner is at work already")

// ErrAbsent is wrapped when the state directory has no background runner.
var ErrAbsent = errors.New("no background runner is at work")

const (
	// lockName is the file whose lock is the runner's; it says which owner the runner
	// is, or was.
	lockName = "background.lock"
	// readyBound is how long a runner may take to come up or to answer.
	readyBound = 10 * time.Second
	readyPause = 10 * time.Millisecond
	// startBound is how long one that was just started may take.
	startBound = 3 * time.Second
)

// take makes this process the background runner of the state directory, until the
// file is closed.
func take(dir string, me owner.Info) (*os.File, error) {
	f, err := filelock.TryPath(filepath.Join(dir, lockName), filelock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("become the background runner: %w", err)
	}
	if f == nil {
		return nil, taken(dir)
	}
	if err := write(f, me); err != nil {
		_ = f.Close() // the first error says more
		return nil, fmt.Errorf("become the background runner: %w", err)
	}
	return f, nil
}

func taken(dir string) error {
	return errs.New("background.Serve", errs.Conflict, "insightscli stop", "%w%s", ErrTaken, who(dir))
}

// write makes a locked file say who the runner is. A reader that comes in between
// sees nobody, and looks again.
func write(f *os.File, me owner.Info) error {
	body, err := json.Marshal(me)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(body, 0)
	return err
}

func who(dir string) string {
	now, err := read(dir)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d, version %s)", now.PID, now.Version)
}

// read returns who the runner is, or was.
func read(dir string) (owner.Info, error) {
	var now owner.Info
	b, err := os.ReadFile(filepath.Join(dir, lockName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return now, err
	}
	if json.Unmarshal(b, &now) != nil { // nothing, or being written
		return now, errs.New("background.read", errs.NotFound, "insightscli start -d", "%w", ErrAbsent)
	}
	return now, nil
}

// Client talks to the background runner of a state directory.
type Client struct {
	Dir     string
	Version string // of this program
	// Start starts a background runner as a process of its own and returns at once.
	Start func(ctx context.Context) error
}

// Knock makes the runner look for work, starting one if there is none.
func (c Client) Knock(ctx context.Context) error { return c.request(ctx, OpKnock) }

// Stay makes the runner one that stays without work, starting one if there is none:
// [Client.Start] is to start such a one. That one stays already is a Conflict.
func (c Client) Stay(ctx context.Context) error { return c.request(ctx, OpStay) }

func (c Client) request(ctx context.Context, op string) error {
	version, err := json.Marshal(c.Version)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(readyBound)
	for {
		err := c.ask(ctx, owner.Request{Op: op, Body: version})
		if !errors.Is(err, ErrAbsent) {
			return err
		}
		if err := c.Start(ctx); err != nil {
			return err
		}
		// One that ends just now may still be in the way of the one that was started.
		err = c.waitReady(ctx, startBound)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// WaitReady waits until a runner can be reached.
func (c Client) WaitReady(ctx context.Context) error { return c.waitReady(ctx, readyBound) }

func (c Client) waitReady(ctx context.Context, bound time.Duration) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		_, err := c.Status(ctx)
		if err == nil || !errors.Is(err, ErrAbsent) {
			return err
		}
		select {
		case <-ctx.Done():
			if caller.Err() != nil {
				return context.Cause(caller) // interrupted
			}
			return errs.New("background.WaitReady", errs.Unavailable, "insightscli start",
				"the background runner did not come up: %w", err)
		case <-time.After(readyPause):
		}
	}
}

// Stop asks the runner to end, and waits until its process has let go of everything.
func (c Client) Stop(ctx context.Context) error {
	now, err := read(c.Dir)
	if err != nil {
		return err
	}
	if err := c.ask(ctx, owner.Request{Op: OpStop}); err != nil {
		return err
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	for {
		if alive, err := owner.Alive(c.Dir, now.ID); err != nil || !alive {
			return err
		}
		select {
		case <-ctx.Done():
			if caller.Err() != nil {
				return context.Cause(caller) // interrupted
			}
			return errs.New("background.Stop", errs.Incomplete, "insightscli stop", "the background runner is still there")
		case <-time.After(readyPause):
		}
	}
}

// Status asks the runner how it is. The error wraps ErrAbsent when there is none.
func (c Client) Status(ctx context.Context) (Status, error) {
	var st Status
	now, err := read(c.Dir)
	if err != nil {
		return st, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	conn, err := owner.Dial(ctx, c.Dir, now.ID, owner.Request{Op: OpStatus})
	if err != nil {
		return st, c.absent(now, err)
	}
	defer func() { _ = conn.Close() }() // only read from
	bound, _ := ctx.Deadline()
	_ = conn.SetReadDeadline(bound) // a closed connection fails below
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return st, c.absent(now, err)
	}
	return st, json.Unmarshal(line, &st)
}

func (c Client) ask(ctx context.Context, req owner.Request) error {
	now, err := read(c.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	conn, err := owner.Dial(ctx, c.Dir, now.ID, req)
	if err != nil {
		return c.absent(now, err)
	}
	return conn.Close()
}

// absent tells a runner that is gone from one that is in trouble.
func (c Client) absent(now owner.Info, err error) error {
	alive, lookErr := owner.Alive(c.Dir, now.ID)
	if lookErr == nil && !alive || errs.KindOf(err) == errs.NotFound {
		return errs.New("background.Client", errs.NotFound, "insightscli start -d", "%w", ErrAbsent)
	}
	if errs.KindOf(err) == errs.Unavailable {
		// It holds its lock and does not listen yet.
		return errs.New("background.Client", errs.Unavailable, "insightscli start", "%w: %w", ErrAbsent, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errs.New("background.Client", errs.Unavailable, fmt.Sprintf("see what process %d is doing", now.PID),
			"the background runner does not answer: %w", err)
	}
	return err
}
