package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/owner"
)

var errNobody = errors.New("nobody may start one")

func newClient(t *testing.T) Client {
	t.Helper()
	return Client{Dir: t.TempDir(), Version: "1", Start: func(context.Context) error { return errNobody }}
}

// says writes what background.lock says.
func says(t *testing.T, c Client, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, lockName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// served makes the lock name a living owner that answers status with handler.
func served(t *testing.T, c Client, handler owner.Handler) {
	t.Helper()
	me, err := owner.Acquire(t.Context(), c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(me.Info)
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, string(b))
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	if handler == nil {
		close(ready)
		done <- nil
	} else {
		go func() { done <- me.Serve(ctx, map[string]owner.Handler{OpStatus: handler}, func() { close(ready) }) }()
	}
	<-ready
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, me.Release()); err != nil {
			t.Error(err)
		}
	})
}

// However a lock file looks that no runner holds, there is none: taken for one, nothing
// would ever start a runner again.
func TestNobodyIsThere(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "torn": `{"id":"11111111-`, "no object": "7", "no owner": "{}", "no id": `{"id":"../../etc"}`,
		"dead": `{"id":"11111111-0000-4000-8000-000000000000","pid":1}`,
	} {
		c := newClient(t)
		says(t, c, text)
		_, status := c.Status(t.Context())
		for what, err := range map[string]error{"status": status, "stop": c.Stop(t.Context())} {
			if !errors.Is(err, ErrAbsent) || errs.KindOf(err) != errs.NotFound || errs.HintOf(err) == "" {
				t.Errorf("%s, %s: %v (%s)", name, what, err, errs.KindOf(err))
			}
		}
		if err := c.Knock(t.Context()); !errors.Is(err, errNobody) {
			t.Errorf("%s, knock: %v", name, err)
		}
	}
	c := newClient(t)
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrAbsent) {
		t.Errorf("no file: %v", err)
	}
}

// A lock file that cannot be read tells nothing: no second runner is started on it.
func TestUnreadableLockIsNotAbsence(t *testing.T) {
	c := newClient(t)
	if err := os.Mkdir(filepath.Join(c.Dir, lockName), 0o700); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"knock": c.Knock(t.Context()), "stop": c.Stop(t.Context()), "wait": c.WaitReady(t.Context())} {
		if err == nil || errors.Is(err, ErrAbsent) || errors.Is(err, errNobody) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Ctrl-C while waiting is an interrupt, exit 130, not "did not come up", exit 5.
func TestInterruptedWaitIsAnInterrupt(t *testing.T) {
	c := newClient(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errs.New("x", errs.Terminated, "", "terminated"))
	for range 20 { // two ends are there at once; either could be seen first
		if err := c.WaitReady(ctx); errs.KindOf(err) != errs.Terminated {
			t.Fatalf("%v (%s)", err, errs.KindOf(err))
		}
	}
}

// It lives, but nobody listens: between its start and its socket. Told as absent so that
// a wait goes on, and as unavailable to whoever does not wait.
func TestRunnerThatDoesNotListenYet(t *testing.T) {
	c := newClient(t)
	served(t, c, nil)
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrAbsent) || errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v (%s)", err, errs.KindOf(err))
	}
}

// A runner that accepts and then says nothing (stopped, or out of disk) is an error with a
// name, in bounded time.
func TestRunnerThatDoesNotAnswer(t *testing.T) {
	c := newClient(t)
	served(t, c, func(ctx context.Context, _ owner.Request, conn net.Conn) error {
		_, _ = conn.Read(make([]byte, 1)) // accepts, and waits
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Status(ctx); errs.KindOf(err) != errs.Unavailable || errors.Is(err, ErrAbsent) || errs.HintOf(err) == "" {
		t.Errorf("%v (%s)", err, errs.KindOf(err))
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "hello\n", "cut": `{"version":`} {
		c := newClient(t)
		served(t, c, func(_ context.Context, _ owner.Request, conn net.Conn) error {
			_, err := fmt.Fprint(conn, text)
			return err
		})
		if st, err := c.Status(t.Context()); err == nil || errors.Is(err, ErrAbsent) {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
	}
}

// What the runner refuses reaches the user with its kind and hint, and starts no second
// runner.
func TestRefusalsKeepTheirKind(t *testing.T) {
	c := newClient(t)
	served(t, c, func(context.Context, owner.Request, net.Conn) error {
		return errs.New("x", errs.Conflict, "do this", "not now")
	})
	_, err := c.Status(t.Context())
	if errs.KindOf(err) != errs.Conflict || errs.HintOf(err) != "do this" || err.Error() != "not now" {
		t.Errorf("%v (%s)", err, errs.KindOf(err))
	}
	if err := c.Knock(t.Context()); err == nil || errors.Is(err, errNobody) { // an operation that it does not know
		t.Errorf("knock: %v", err)
	}
}

// Whoever comes second is told who is first.
func TestTakenNamesTheRunner(t *testing.T) {
	c := newClient(t)
	first, err := take(c.Dir, owner.Info{ID: "11111111-0000-4000-8000-000000000000", PID: 42, Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(c.Dir, owner.Info{PID: 43}); !errors.Is(err, ErrTaken) || err.Error() != ErrTaken.Error()+" (process 42, version 1.2)" {
		t.Errorf("%v", err)
	}
	_ = first.Close()
	second, err := take(c.Dir, owner.Info{PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	// A shorter text than before: nothing of the older may be left behind it.
	if now, err := read(c.Dir); err != nil || now.PID != 7 || now.Version != "" {
		t.Errorf("%+v, %v", now, err)
	}
	_ = second.Close()
}
