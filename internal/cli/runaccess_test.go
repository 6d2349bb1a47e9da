package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/task"
)

// echoBox is a sandbox whose PID 1 gives a command's input back, or hangs until the
// asker has gone.
type echoBox struct{ gone chan struct{} }

// Open implements streams.
func (b *echoBox) Open(_ context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = theirs.Close() }()
		r, w := wire.NewStreamReader(theirs), wire.NewStreamWriter(theirs)
		var c wire.Command
		if r.Line(&c) != nil {
			return
		}
		for {
			kind, p, err := r.Next()
			switch {
			case err != nil:
				close(b.gone)
				return
			case kind == wire.StreamInput:
				_ = w.Write(wire.StreamOutput, p)
			case kind == wire.StreamEOF && c.Argv[0] == "echo":
				_ = w.Exit(wire.Exit{Code: 3})
				return
			}
		}
	}()
	return ours, nil
}

// ownerOfRun serves one owner's socket and returns what asks it.
func ownerOfRun(t *testing.T, client func(task.ID) (streams, error)) agent.Remote {
	t.Helper()
	dir := t.TempDir()
	me, err := owner.Acquire(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- me.Serve(ctx, map[string]owner.Handler{opOpen: openHandler(client)}, func() { close(ready) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, me.Release()); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return agent.Remote{Open: func(ctx context.Context, service string) (net.Conn, error) {
		return owner.Dial(ctx, dir, me.ID, owner.Request{Op: opOpen, Run: task.NewID(), Service: service})
	}}
}

func TestCommandRunsThroughTheOwner(t *testing.T) {
	box := &echoBox{gone: make(chan struct{})}
	remote := ownerOfRun(t, func(task.ID) (streams, error) { return box, nil })
	in := strings.Repeat("0123456789\n", 20_000)
	var out strings.Builder
	code, err := remote.Exec(t.Context(), wire.Command{Argv: []string{"echo"}}, agent.Stdio{In: strings.NewReader(in), Out: &out})
	if err != nil || code != 3 || out.String() != in {
		t.Errorf("code %d, %d of %d bytes, %v", code, out.Len(), len(in), err)
	}
}

func TestCommandEndsWhenItsAskerGoes(t *testing.T) {
	box := &echoBox{gone: make(chan struct{})}
	remote := ownerOfRun(t, func(task.ID) (streams, error) { return box, nil })
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	go func() { // the command has begun when it answers
		_, _ = r.Read(make([]byte, 1))
		cancel(errs.New("test", errs.Canceled, "", "interrupted"))
		_ = r.Close()
	}()
	_, err := remote.Exec(ctx, wire.Command{Argv: []string{"hang"}}, agent.Stdio{In: strings.NewReader("x"), Out: w})
	if errs.KindOf(err) != errs.Canceled {
		t.Errorf("err = %v", err)
	}
	<-box.gone
}

func TestOwnerRefusesWithKindAndHint(t *testing.T) {
	remote := ownerOfRun(t, func(task.ID) (streams, error) {
		return nil, errs.New("test", errs.Conflict, "do this", "no sandbox")
	})
	_, err := remote.Open(t.Context(), wire.ServiceExec)
	if errs.KindOf(err) != errs.Conflict || errs.HintOf(err) != "do this" || err.Error() != "no sandbox" {
		t.Errorf("err = %v", err)
	}
	for _, service := range []string{wire.ServiceEvents, wire.ServiceRPC, "", "llm"} {
		if _, err := remote.Open(t.Context(), service); errs.KindOf(err) != errs.Conflict {
			t.Errorf("service %q: %v", service, err)
		}
	}
}
