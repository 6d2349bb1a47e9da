package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// maxLine bounds one message of Codex.
const maxLine = 32 << 20

// The code of an answer to a request that we do not know.
const codeNoMethod = -32601

// message is one line of the protocol, which is JSON-RPC 2.0 without saying so.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// peer is who listens to a conn.
type peer interface {
	// notified is called for one notification after the other. Nothing is read
	// meanwhile.
	notified(ctx context.Context, method string, params json.RawMessage)
	// asked answers a request. The context ends when nobody waits for it any more.
	asked(ctx context.Context, method string, params json.RawMessage) (any, error)
}

// conn is one running program.
type conn struct {
	pipe    *agentserver.Pipe
	peer    peer
	ctx     context.Context
	cancel  context.CancelFunc
	grace   time.Duration
	writing chan struct{} // of one: holds who writes
	dead    chan struct{} // closed when the program has ended
	closing chan struct{} // closed when that is what we want
	once    sync.Once     // of closing
	running sync.WaitGroup

	mu      sync.Mutex // guards the rest
	next    int64
	waiting map[int64]waiter
	asking  map[string]context.CancelFunc // by the id of the request
	err     error                         // why it is dead
}

func newConn(ctx context.Context, pipe *agentserver.Pipe, p peer, grace time.Duration) *conn {
	c := &conn{
		pipe: pipe, peer: p, grace: grace, writing: make(chan struct{}, 1), dead: make(chan struct{}), closing: make(chan struct{}),
		waiting: map[int64]waiter{}, asking: map[string]context.CancelFunc{},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	heard := make(chan struct{})
	c.running.Go(func() {
		defer close(c.dead)
		err := c.read()
		close(heard)
		c.lastWords()
		c.pipe.Close(c.grace, syscall.SIGTERM)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
	})
	c.running.Go(func() {
		// What the program has left behind may hold its output open.
		select {
		case <-pipe.Child.Done():
		case <-heard:
			return
		}
		timer := time.NewTimer(2 * time.Second)
		defer timer.Stop()
		select {
		case <-heard:
		case <-timer.C:
			c.pipe.Close(c.grace)
		}
	})
	return c
}

// lastWords gives what the program may have said at its end, which comes on another way
// than its output, a moment to be there.
func (c *conn) lastWords() {
	const moment = 200 * time.Millisecond
	timer := time.NewTimer(moment)
	defer timer.Stop()
	tick := time.NewTicker(moment / 40)
	defer tick.Stop()
	for c.pipe.Tail() == "" {
		select {
		case <-tick.C:
		case <-c.closing:
			return
		case <-timer.C:
			return
		}
	}
}

// read reads until the end.
func (c *conn) read() error {
	r := bufio.NewReaderSize(c.pipe.Out, 64<<10)
	for {
		line, err := wire.ReadLine(r, maxLine)
		if errors.Is(err, wire.ErrFrame) {
			return fmt.Errorf("it wrote a line of more than %d MiB", maxLine>>20)
		}
		if err != nil {
			return nil // the end of the program says more
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue // not ours
		}
		c.dispatch(m)
	}
}

func (c *conn) dispatch(m message) {
	switch {
	case m.Method == "":
		c.answered(m)
	case m.ID == nil:
		if m.Method == "serverRequest/resolved" {
			c.resolved(m.Params)
			return
		}
		c.peer.notified(c.ctx, m.Method, m.Params)
	default:
		c.asked(m)
	}
}

// asked begins to answer a request. The same one again is left alone: one answer could not
// be told from the other.
func (c *conn) asked(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.asking[string(m.ID)]; twice {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.asking[string(m.ID)] = cancel
	c.running.Go(func() {
		defer cancel()
		c.serve(ctx, m)
	})
}

// waiter is a call that waits.
type waiter struct {
	answer chan message
	first  func(result json.RawMessage) // called before the next message is looked at
}

// answered hands an answer to the call that waits for it.
func (c *conn) answered(m message) {
	var id int64
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.waiting[id]; ok {
		delete(c.waiting, id)
		if w.first != nil && m.Error == nil {
			w.first(m.Result)
		}
		w.answer <- m // of one
	}
}

// resolved: Codex waits no longer for the answer to a request.
func (c *conn) resolved(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p) // one that is not there ends nothing
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.asking[string(p.ID)]; ok {
		cancel()
	}
}

// serve answers a request of Codex.
func (c *conn) serve(ctx context.Context, m message) {
	result, err := c.peer.asked(ctx, m.Method, m.Params)
	gone := ctx.Err() != nil
	c.mu.Lock()
	c.asking[string(m.ID)]()
	delete(c.asking, string(m.ID))
	c.mu.Unlock()
	if gone {
		return
	}
	reply := message{ID: m.ID}
	if err == nil {
		reply.Result, err = json.Marshal(result)
	}
	if err != nil {
		reply.Error = &rpcError{codeNoMethod, err.Error()}
	}
	_ = c.send(c.ctx, reply) // when it cannot be sent, the program has ended
}

// call sends a request and waits for its result, which may be nil.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	return c.callFirst(ctx, method, params, result, nil)
}

// callFirst is call, and calls first with the result before the next message is looked
// at.
func (c *conn) callFirst(ctx context.Context, method string, params, result any, first func(json.RawMessage)) error {
	p, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	ch := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = waiter{ch, first}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}()
	raw, _ := json.Marshal(id) // a number
	if err := c.send(ctx, message{ID: raw, Method: method, Params: p}); err != nil {
		return err
	}
	select {
	case m := <-ch:
		if m.Error != nil {
			return fmt.Errorf("codex: %s: %s", method, oneLine(m.Error.Message))
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("codex: %s: %w", method, err)
		}
		return nil
	case <-c.dead:
		return c.lost()
	case <-ctx.Done():
		return fmt.Errorf("codex: %s: no answer: %w", method, context.Cause(ctx))
	}
}

// send writes one message. It blocks while the program does not read; ending the program
// ends that too.
func (c *conn) send(ctx context.Context, m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Method, err)
	}
	select {
	case c.writing <- struct{}{}:
	case <-c.dead:
		return c.lost()
	case <-ctx.Done():
		return fmt.Errorf("codex: %s: it takes no input: %w", m.Method, context.Cause(ctx))
	}
	defer func() { <-c.writing }()
	if _, err := c.pipe.In.Write(append(b, '\n')); err != nil {
		c.pipe.Close(c.grace, syscall.SIGTERM) // it hears us no more
		<-c.dead
		return c.lost()
	}
	return nil
}

// close ends the program and everything that belongs to it.
func (c *conn) close(grace time.Duration) {
	c.once.Do(func() { close(c.closing) })
	c.pipe.Close(grace, syscall.SIGTERM)
	c.cancel()
	c.running.Wait()
}

// colors are what Codex's own log has in it.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// lost says why the program is gone. It is called when it is.
func (c *conn) lost() error {
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	how := "codex ended"
	select {
	case <-c.pipe.Child.Done():
		if exit := c.pipe.Child.Exit(); exit.Signal != 0 {
			how += " by " + exit.Signal.String()
		} else {
			how += fmt.Sprintf(" with exit code %d", exit.Code)
		}
	default:
	}
	if err != nil {
		how = "codex was ended: " + err.Error()
	}
	if tail := tailWords(c.pipe.Tail()); tail != "" {
		how += ": " + tail
	}
	return errors.New(how)
}

// tailWords is the end of a log in one line.
func tailWords(text string) string {
	const limit = 600
	text = oneLine(colors.ReplaceAllString(text, ""))
	if len(text) > limit {
		text = "…" + text[len(text)-limit:]
	}
	return text
}
