package agentserver

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"sync"

	"github.com/Insights/insightscli/internal/link/wire"
)

// maxCalls bounds the calls of one stream that are going on at the same time.
const maxCalls = 256

// calls is one stream of wire.ServiceRPC.
type calls struct {
	server *Server
	conn   net.Conn
	write  sync.Mutex // the order of answers on conn

	mu      sync.Mutex // guards pending
	pending map[uint64]context.CancelFunc
}

// serveRPC answers JSON-RPC messages, one a line, each in its own goroutine, until
// the stream ends. A host that hangs up waits for no answer.
func (s *Server) serveRPC(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	c := &calls{server: s, conn: conn, pending: map[uint64]context.CancelFunc{}}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	in := bufio.NewReader(conn)
	for {
		line, err := wire.ReadLine(in, wire.MaxRPC)
		if err != nil {
			return nil //nolint:nilerr // the end of the stream, whatever it looks like
		}
		var req wire.RPCRequest
		if err := json.Unmarshal(line, &req); err != nil {
			c.answer(nil, nil, &wire.RPCError{Code: wire.CodeParse, Message: "not a JSON-RPC message"})
			continue
		}
		switch {
		case req.Method == wire.NotifyCancel:
			c.cancel(req.Params)
		case req.ID == nil: // an unknown notification is ignored
		default:
			c.serve(ctx, &running, req)
		}
	}
}

func (c *calls) serve(ctx context.Context, running *sync.WaitGroup, req wire.RPCRequest) {
	id := *req.ID
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	_, taken := c.pending[id]
	full := len(c.pending) >= maxCalls
	if !taken && !full {
		c.pending[id] = cancel
	}
	c.mu.Unlock()
	if taken || full {
		cancel()
		c.answer(req.ID, nil, &wire.RPCError{Code: wire.CodeInvalidRequest, Message: "too many calls, or an id that is in use"})
		return
	}
	running.Go(func() {
		defer cancel()
		result, err := c.server.call(ctx, req.Method, req.Params, false)
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
		c.answer(req.ID, result, err)
		if req.Method == wire.MethodShutdown && err == nil {
			c.server.Stop() // only now: the answer is on its way
		}
	})
}

func (c *calls) cancel(params json.RawMessage) {
	var p wire.RPCCancel
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.pending[p.ID]; cancel != nil {
		cancel()
	}
}

// answer writes one response. A stream that is gone needs none.
func (c *calls) answer(id *uint64, result any, err error) {
	b := encodeResponse(id, result, err)
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.conn.Write(append(b, '\n'))
}

func encodeResponse(id *uint64, result any, err error) []byte {
	r := wire.RPCResponse{JSONRPC: wire.RPCVersion, ID: id}
	if err == nil {
		r.Result, err = json.Marshal(result)
	}
	if err != nil {
		r.Result, r.Error = nil, rpcError(err)
	}
	b, _ := json.Marshal(r) // of strings, numbers and JSON that was just made
	return b
}
