package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// agent is one process of the agent and the connection with it.
type agent struct {
	pipe  *agentserver.Pipe
	conn  *sdk.Connection
	feed  *io.PipeWriter // what the connection reads
	muted atomic.Bool    // updates repeat what is known
	slots chan struct{}  // of its requests that are being answered

	stop  context.CancelFunc // of what is being put into the journal
	ended chan struct{}      // closed when nothing more is read of it
	fault error              // why reading ended, if not with the stream; set before ended is closed

	ending sync.Once
}

// maxRequests bounds the requests of an agent that wait for an answer. With more of them
// it is not read further.
const maxRequests = 32

// launch starts the agent's program.
func (d *driver) launch(ctx context.Context) (*agent, error) {
	argv := append([]string(nil), d.argv...)
	if !strings.Contains(argv[0], "/") {
		argv[0] = d.host.Program(argv[0], d.start.PreferMounted)
	}
	pipe, err := d.host.Pipe(context.WithoutCancel(ctx), argv, d.start.Dir, d.environ())
	if err != nil {
		return nil, fmt.Errorf("start agent %s: %w", d.argv[0], err)
	}
	// The process outlives the prompt that started it; Close of the driver ends it.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	out, feed := io.Pipe()
	a := &agent{pipe: pipe, feed: feed, slots: make(chan struct{}, maxRequests), stop: stop, ended: make(chan struct{})}
	a.conn = sdk.NewConnection(d.handler(a), pipe.In, out)
	a.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log what the agent says
	go a.read(life, &reader{agent: a, host: d.host})
	return a, nil
}

// read takes what the agent writes, to the end.
func (a *agent) read(life context.Context, r *reader) {
	defer close(a.ended)
	a.fault = r.all(life, a.pipe.Out)
	_ = a.feed.Close()
}

// lost reports whether the agent can be asked nothing more.
func (a *agent) lost() bool {
	select {
	case <-a.ended:
		return true
	case <-a.pipe.Child.Done():
		return true
	default:
		return false
	}
}

// close ends the agent, by its input, which not every agent heeds, then by signals. It
// may be called again, and waits for the first call.
func (a *agent) close(grace time.Duration) {
	a.ending.Do(func() {
		_ = a.pipe.In.Close()
		a.pipe.Child.Wait(grace / 4)
		_ = a.pipe.Child.Signal(syscall.SIGTERM)
		a.pipe.Close(grace, syscall.SIGTERM)
		a.stop()
		_ = a.feed.Close()
		<-a.ended
	})
}

// cancel asks the agent to end the turn of a session.
func (a *agent) cancel(ctx context.Context, session string) {
	_ = a.conn.SendNotification(ctx, sdk.AgentMethodSessionCancel,
		sdk.CancelNotification{SessionId: sdk.SessionId(session)}) // else it is ended
}

// ask sends a request and waits for the answer, which is read leniently: an agent may be
// newer than the library.
func ask[T any](ctx context.Context, a *agent, method string, params any) (T, error) {
	return sdk.SendRequest[T](a.conn, ctx, method, params)
}

// explain returns the error of a request in words: what the agent says, or why it says
// nothing any more.
func (a *agent) explain(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-a.conn.Done():
	default:
		return inWords(err)
	}
	select {
	case <-a.ended: // what follows the end of the connection at once
	case <-time.After(time.Second):
		return inWords(err)
	}
	a.pipe.Child.Wait(time.Second)
	select {
	case <-a.pipe.Child.Done():
	default:
		if a.fault != nil {
			return a.fault
		}
		return errors.New("it has closed its output" + a.lastWords())
	}
	if a.fault != nil {
		return a.fault
	}
	exit := a.pipe.Child.Exit()
	if exit.Signal != 0 {
		return fmt.Errorf("it was ended by %s%s", proc.SignalName(exit.Signal), a.lastWords())
	}
	return fmt.Errorf("it ended with exit code %d%s", exit.Code, a.lastWords())
}

// lastWords is the end of what the agent wrote to its standard error, for the end of a
// sentence.
func (a *agent) lastWords() string {
	const most = 500
	text := strings.Join(strings.Fields(a.pipe.Tail()), " ")
	if text == "" {
		return ""
	}
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return ": " + text
}

// inWords turns the library's error, which is JSON, into a sentence.
func inWords(err error) error {
	var answer *sdk.RequestError
	if !errors.As(err, &answer) {
		return err
	}
	text := answer.Message
	if detail := detailOf(answer.Data); detail != "" && !strings.Contains(text, detail) {
		text += ": " + detail
	}
	return &answerError{code: answer.Code, text: text}
}

// answerError is an error that the agent answered with.
type answerError struct {
	code int
	text string
}

func (e *answerError) Error() string { return e.text }

// detailOf finds the words in the data of an error, in the forms that agents use.
func detailOf(data any) string {
	switch v := data.(type) {
	case string:
		return v
	case map[string]any:
		for _, key := range []string{"details", "message", "error", "reason"} {
			if text := detailOf(v[key]); text != "" {
				return text
			}
		}
	}
	return ""
}
