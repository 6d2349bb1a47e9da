package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pipe is a way to a server that was opened: kill closes it by force and is called
// exactly once; said is the last the server told people.
type pipe struct {
	transport sdk.Transport
	kill      func()
	said      func() string
}

type dialer func(ctx context.Context) (*pipe, error)

// upstream is one server behind a relay, with at most one session at a time.
type upstream struct {
	name     string
	dial     dialer
	options  sdk.ClientOptions
	progress sync.Map // token -> func(*sdk.ProgressNotificationParams)

	// turn is held while a session is opened or closed, so that calls that find it lost
	// at the same time open one.
	turn   chan struct{}
	cur    *session
	closed bool
}

// session is one session with a server. dead is closed when it can be used no more.
type session struct {
	*sdk.ClientSession

	pipe *pipe
	dead chan struct{}
}

func newUpstream(name string, dial dialer) *upstream {
	u := &upstream{name: name, dial: dial, turn: make(chan struct{}, 1)}
	u.options = sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			if f, ok := u.progress.Load(fmt.Sprint(req.Params.ProgressToken)); ok {
				if tell, ok := f.(func(*sdk.ProgressNotificationParams)); ok {
					tell(req.Params)
				}
			}
		},
	}
	return u
}

// lock waits for the turn.
func (u *upstream) lock(ctx context.Context) error {
	select {
	case u.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *upstream) unlock() { <-u.turn }

// session returns the session, and opens one where there is none.
func (u *upstream) session(ctx context.Context) (*session, error) {
	if err := u.lock(ctx); err != nil {
		return nil, err
	}
	defer u.unlock()
	if u.closed {
		return nil, errors.New("the run is over")
	}
	if u.cur != nil {
		select {
		case <-u.cur.dead:
			u.cur.close()
			u.cur = nil
		default:
			return u.cur, nil
		}
	}
	s, err := u.open(ctx)
	if err != nil {
		return nil, err
	}
	u.cur = s
	return s, nil
}

// open connects. The handshake is the one of 2025-11-25, which every server knows: one
// of before 2026 may leave the question for a newer one without an answer.
func (u *upstream) open(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	s, err := u.connect(ctx, "2025-11-25")
	if answerIn(err) != nil {
		return u.connect(ctx, "") // perhaps it knows only the newer one
	}
	return s, err
}

func (u *upstream) connect(ctx context.Context, version string) (*session, error) {
	w, err := u.dial(ctx)
	if err != nil {
		return nil, err
	}
	options := u.options
	client := sdk.NewClient(&sdk.Implementation{Name: "insightscli", Version: "1"}, &options)
	cs, err := client.Connect(ctx, w.transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.kill()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", connectTime)
		}
		if w.said != nil && w.said() != "" {
			err = fmt.Errorf("%w; it said: %s", err, w.said())
		}
		return nil, err
	}
	s := &session{ClientSession: cs, pipe: w, dead: make(chan struct{})}
	go func() { // ends with the session, which close waits for
		defer close(s.dead)
		_ = cs.Wait()
	}()
	return s, nil
}

// close ends the session: in order where the server still listens, else by force.
func (s *session) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = s.Close()
	}()
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	s.pipe.kill()
	<-closed
	<-s.dead
}

// drop closes s if it is still the session, because it is of no use any more.
func (u *upstream) drop(ctx context.Context, s *session) {
	if u.lock(ctx) != nil {
		return
	}
	defer u.unlock()
	if u.cur == s {
		s.close()
		u.cur = nil
	}
}

// close ends the session for good.
func (u *upstream) close() {
	u.turn <- struct{}{}
	defer u.unlock()
	u.closed = true
	if u.cur != nil {
		u.cur.close()
		u.cur = nil
	}
}

// do runs f with the session. A lost session is opened again, once, and f is run again
// if again says that this does no harm or if the server cannot have seen the request.
// The error is one for the agent: an answer of the server, or one line that names it.
func (u *upstream) do(ctx context.Context, again bool, f func(context.Context, *sdk.ClientSession) error) error {
	for try := 0; ; try++ {
		s, err := u.session(ctx)
		if err != nil {
			return u.explain(ctx, fmt.Errorf("is not reachable: %w", err))
		}
		err = f(ctx, s.ClientSession)
		answer := answerIn(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return u.explain(ctx, err)
		case answer != nil && !noSession(answer):
			return answer
		}
		u.drop(ctx, s)
		if try > 0 {
			return u.explain(ctx, fmt.Errorf("was lost again: %w", err))
		}
		if !again && !unseen(err) {
			return u.explain(ctx, fmt.Errorf("was lost during the call, and whether it was carried out is not known; look before you call again: %w", err))
		}
	}
}

// explain names the server. The result is one line for a model and wraps nothing.
func (u *upstream) explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the MCP server %q did not answer in time", u.name)
	}
	return fmt.Errorf("the MCP server %q %s", u.name, err.Error())
}

// answerIn returns the answer of the server in err, if it is one. The SDK has errors of
// its own of that type: the connection closes, or a request was not sent.
func answerIn(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code <= -32003 && e.Code >= -32005 {
		return nil
	}
	return e
}

// unseen reports whether the server cannot have begun with the request.
func unseen(err error) bool {
	var op *net.OpError
	answer := answerIn(err)
	return errors.Is(err, sdk.ErrSessionMissing) || errors.As(err, &op) && op.Op == "dial" || answer != nil && noSession(answer)
}

// noSession recognises the answer of a server that was started again, in the words of
// the widespread implementations.
func noSession(e *jsonrpc.Error) bool {
	msg := strings.ToLower(e.Message)
	return (e.Code == -32000 || e.Code == -32001) && strings.Contains(msg, "session") &&
		(strings.Contains(msg, "not found") || strings.Contains(msg, "no valid") || strings.Contains(msg, "unknown") || strings.Contains(msg, "not initialized"))
}

// rawArgs are arguments as they came, or the empty object.
func rawArgs(args json.RawMessage) json.RawMessage {
	if len(args) == 0 || string(args) == "null" {
		return json.RawMessage("{}")
	}
	return args
}
