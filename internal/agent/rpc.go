package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// rpc multiplexes JSON-RPC calls over one stream, by id.
type rpc struct {
	conn    net.Conn
	writing chan struct{} // a lock that a context can stop waiting for

	mu      sync.Mutex // guards the rest
	next    uint64
	pending map[uint64]chan<- wire.RPCResponse // closed when the stream has ended
	ended   error                              // set when the stream has ended
}

func newRPC(conn net.Conn) *rpc {
	return &rpc{conn: conn, writing: make(chan struct{}, 1), pending: map[uint64]chan<- wire.RPCResponse{}}
}

// read hands out the answers until the stream ends.
func (r *rpc) read() {
	in := bufio.NewReader(r.conn)
	for {
		line, err := wire.ReadLine(in, wire.MaxRPC)
		if err != nil {
			r.end(err)
			return
		}
		var answer wire.RPCResponse
		if err := json.Unmarshal(line, &answer); err != nil {
			r.end(fmt.Errorf("malformed answer of the agent server"))
			return
		}
		if answer.ID != nil {
			r.answer(*answer.ID, answer)
		}
	}
}

func (r *rpc) answer(id uint64, answer wire.RPCResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting, ok := r.pending[id]; ok { // else it waits no more
		delete(r.pending, id)
		waiting <- answer
	}
}

// end fails all calls, now and later.
func (r *rpc) end(err error) {
	_ = r.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = err
	for id, waiting := range r.pending {
		delete(r.pending, id)
		close(waiting)
	}
}

// call makes one call and decodes its result into result, unless that is nil. When
// ctx ends first PID 1 is told that nobody waits.
func (r *rpc) call(ctx context.Context, method string, params, result any) error {
	op := "agent." + method
	id, answered, err := r.register()
	if err != nil {
		return lost(op, err)
	}
	if err := r.send(ctx, &id, method, params); err != nil {
		r.forget(id)
		return err
	}
	select {
	case answer, ok := <-answered:
		if !ok {
			return lost(op, nil)
		}
		return decode(op, answer, result)
	case <-ctx.Done():
		r.forget(id)
		// Best effort: the call's own context is over, so this has its own bound.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		_ = r.send(bounded, nil, wire.NotifyCancel, wire.RPCCancel{ID: id})
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// cancelTime bounds the sending of a cancellation.
const cancelTime = time.Second

func (r *rpc) register() (uint64, <-chan wire.RPCResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return 0, nil, r.ended
	}
	r.next++
	answered := make(chan wire.RPCResponse, 1)
	r.pending[r.next] = answered
	return r.next, answered, nil
}

func (r *rpc) forget(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
}

// send writes one message. When ctx ends within it the stream is of no use any
// more, and is ended.
func (r *rpc) send(ctx context.Context, id *uint64, method string, params any) error {
	op := "agent." + method
	line, err := encode(id, method, params)
	if err != nil {
		return err
	}
	select {
	case r.writing <- struct{}{}:
		defer func() { <-r.writing }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	n, err := r.write(ctx, line)
	switch {
	case err == nil:
		return nil
	case n == 0 && ctx.Err() != nil: // the stream is still good
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	r.end(err)
	return lost(op, err)
}

// write writes line until ctx ends.
func (r *rpc) write(ctx context.Context, line []byte) (int, error) {
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		_ = r.conn.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := r.conn.Write(line)
	if !stop() {
		<-fired
		_ = r.conn.SetWriteDeadline(time.Time{})
	}
	return n, err
}

func encode(id *uint64, method string, params any) ([]byte, error) {
	p, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	line, err := json.Marshal(wire.RPCRequest{JSONRPC: wire.RPCVersion, ID: id, Method: method, Params: p})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if len(line) >= wire.MaxRPC {
		return nil, errs.New("agent."+method, errs.Usage, "", "a message of %d bytes is too long; %d is the limit", len(line), wire.MaxRPC)
	}
	return append(line, '\n'), nil
}

// decode turns an answer into result or an error.
func decode(op string, answer wire.RPCResponse, result any) error {
	if e := answer.Error; e != nil {
		e.Message = safe(e.Message)
		return errs.New(op, errs.Conflict, "", "the agent server refused: %w", e)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return errs.New(op, errs.Internal, "", "malformed answer of the agent server")
	}
	return nil
}
