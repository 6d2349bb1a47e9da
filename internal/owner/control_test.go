package owner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// serving is an owner that answers.
func serving(t *testing.T, dir string, handlers map[string]Handler) (o *Owner, stop func()) {
	t.Helper()
	o = acquireIn(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- o.Serve(ctx, handlers, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("Serve does not end")
		}
		must(t, o.Release())
	}
	t.Cleanup(stop)
	return o, stop
}

func echo(_ context.Context, req Request, conn net.Conn) error {
	if _, err := fmt.Fprintf(conn, "%s %s %s\n", req.Run, req.Service, req.Body); err != nil {
		return err
	}
	_, err := io.Copy(conn, conn)
	return err
}

func TestControlCarriesARequestAndAStream(t *testing.T) {
	for _, length := range []int{1, 200} {
		dir := filepath.Join(t.TempDir(), strings.Repeat("d", length))
		must(t, os.MkdirAll(dir, 0o700))
		o, _ := serving(t, dir, map[string]Handler{"echo": echo})
		run := task.NewID()
		conn, err := Dial(t.Context(), dir, o.ID, Request{Op: "echo", Run: run, Service: "exec", Body: []byte(`{"n":1}`)})
		must(t, err)
		_, err = conn.Write([]byte("over and out"))
		must(t, err)
		must(t, conn.(interface{ CloseWrite() error }).CloseWrite())
		got, err := io.ReadAll(conn)
		must(t, err)
		must(t, conn.Close())
		if want := string(run) + " exec {\"n\":1}\nover and out"; string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestReadingAccepts: where the asker speaks first the handler reads before it writes.
func TestReadingAccepts(t *testing.T) {
	dir := t.TempDir()
	got := make(chan string, 1)
	o, _ := serving(t, dir, map[string]Handler{"listen": func(_ context.Context, _ Request, conn net.Conn) error {
		line, err := bufio.NewReader(conn).ReadString('\n')
		got <- line
		return err
	}})
	conn, err := Dial(t.Context(), dir, o.ID, Request{Op: "listen"})
	must(t, err)
	_, err = conn.Write([]byte("hello\n"))
	must(t, err)
	if line := <-got; line != "hello\n" {
		t.Errorf("the handler read %q", line)
	}
	must(t, conn.Close())
}

func TestRefusalsKeepKindAndHint(t *testing.T) {
	dir := t.TempDir()
	o, _ := serving(t, dir, map[string]Handler{
		"no": func(context.Context, Request, net.Conn) error {
			return errs.New("x", errs.Conflict, "do that", "not now")
		},
		"fine": func(context.Context, Request, net.Conn) error { return nil },
	})
	_, err := Dial(t.Context(), dir, o.ID, Request{Op: "no"})
	if errs.KindOf(err) != errs.Conflict || errs.HintOf(err) != "do that" || err.Error() != "not now" {
		t.Errorf("%v (%s, %s)", err, errs.KindOf(err), errs.HintOf(err))
	}
	if _, err := Dial(t.Context(), dir, o.ID, Request{Op: "what"}); err == nil || !strings.Contains(err.Error(), `"what"`) {
		t.Errorf("unknown operation: %v", err)
	}
	conn, err := Dial(t.Context(), dir, o.ID, Request{Op: "fine"})
	must(t, err)
	must(t, conn.Close())
}

func TestOwnerThatDoesNotListenIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	_, err := Dial(t.Context(), dir, string(task.NewID()), Request{Op: "x"})
	if errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v", err)
	}
	if _, err := Dial(t.Context(), dir, "../x", Request{Op: "x"}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("%v", err)
	}
}

func TestServeEndsItsConnections(t *testing.T) {
	dir := t.TempDir()
	o, stop := serving(t, dir, map[string]Handler{"echo": echo})
	conn, err := Dial(t.Context(), dir, o.ID, Request{Op: "echo"})
	must(t, err)
	stop() // waits for the handler, which waits for the peer
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	must(t, conn.Close())
	if _, err := os.Stat(sockPath(dir, o.ID)); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	o, _ := serving(t, dir, map[string]Handler{"hang": func(ctx context.Context, _ Request, _ net.Conn) error {
		<-ctx.Done()
		return nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := Dial(ctx, dir, o.ID, Request{Op: "hang"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	dir := t.TempDir()
	o, _ := serving(t, dir, nil)
	for name, request := range map[string]string{
		"no json": "hello\n", "too long": `{"op":"` + strings.Repeat("x", maxLine) + "\"}\n", "wrong type": `{"op":1}` + "\n",
	} {
		conn, err := dial(t.Context(), dir, o.ID)
		must(t, err)
		if _, err := io.WriteString(conn, request); err != nil && name != "too long" {
			t.Error(err)
		}
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if !strings.Contains(line, `"ok":false`) && name != "too long" {
			t.Errorf("%s: answer %q", name, line)
		}
		must(t, conn.Close())
	}
}
