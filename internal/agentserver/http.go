package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/relay"
	"github.com/Insights/insightscli/internal/link/wire"
)

// surface is what clients other than our host see: /health, /events, /command. It is
// served on a TCP port where the provider has one, and on streams of the link.
type surface struct {
	server *Server
	web    *http.Server
	conns  chan net.Conn // from the link
	closed chan struct{}
	once   sync.Once
	reader newest // of /events
}

func newSurface(s *Server) *surface {
	h := &surface{server: s, conns: make(chan net.Conn), closed: make(chan struct{})}
	h.web = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // the agent is a client too, and could fill it
	}
	return h
}

// serve serves public, which may be nil, and the link's streams until ctx ends.
func (h *surface) serve(ctx context.Context, public net.Listener) {
	h.web.BaseContext = func(net.Listener) context.Context { return ctx }
	var serving sync.WaitGroup
	serving.Go(func() { _ = h.web.Serve(streams{h}) })
	if public != nil {
		serving.Go(func() { _ = h.web.Serve(public) })
	}
	<-ctx.Done()
	_ = h.web.Close()
	serving.Wait()
}

// serveConn hands one stream of the link to the HTTP server and returns when that
// has closed it.
func (h *surface) serveConn(ctx context.Context, conn net.Conn) error {
	c := &streamConn{Conn: conn, closed: make(chan struct{})}
	select {
	case h.conns <- c:
	case <-h.closed:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.closed:
	case <-ctx.Done():
	}
	return nil
}

// streams is the listener of the link's streams.
type streams struct{ *surface }

// Accept implements net.Listener.
func (s streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s streams) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (streams) Addr() net.Addr { return &net.UnixAddr{Name: wire.ServiceHTTP, Net: "link"} }

// streamConn tells when it has been closed.
type streamConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *streamConn) Close() error {
	relay.HangUp(c.Conn)
	c.once.Do(func() { close(c.closed) })
	return nil
}

// ServeHTTP implements http.Handler.
func (h *surface) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method + " " + r.URL.Path {
	case "GET /health":
		h.reply(w, http.StatusOK, h.server.Health())
	case "GET /events":
		if h.authorize(w, r) {
			h.events(w, r)
		}
	case "POST /command":
		if h.authorize(w, r) {
			h.command(w, r)
		}
	default:
		h.reply(w, http.StatusNotFound, problem{Error: "Not found"})
	}
}

// problem is the body of an HTTP error.
type problem struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"`
}

// reply answers with v, masked: an error may hold the agent's words.
func (h *surface) reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(h.server.mask().MaskJSON(body), '\n')) // a client that has gone needs no answer
}

// authorize checks the bearer token and answers for a caller whose token is not good.
func (h *surface) authorize(w http.ResponseWriter, r *http.Request) bool {
	err := h.checkToken(r.Header.Get("Authorization"))
	switch {
	case err == nil:
		return true
	case errors.Is(err, errOtherRun) && r.URL.Path == "/command":
		h.reply(w, http.StatusBadRequest, problem{Error: errNoSession.Error()})
	case errors.Is(err, errOtherRun):
		h.reply(w, http.StatusForbidden, problem{Error: err.Error()})
	default:
		h.reply(w, http.StatusUnauthorized, problem{Error: err.Error(), Code: tokenCode(err)})
	}
	return false
}

// publicRequest is a JSON-RPC message with an id of any kind.
type publicRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type publicResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *wire.RPCError  `json:"error,omitempty"`
}

// command answers one JSON-RPC call. Errors of the call itself are 200, as JSON-RPC
// over HTTP has it.
func (h *surface) command(w http.ResponseWriter, r *http.Request) {
	var req publicRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxRPC))
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil || req.JSONRPC != wire.RPCVersion || req.Method == "" {
		h.reply(w, http.StatusBadRequest, problem{Error: "Invalid JSON-RPC request"})
		return
	}
	if !h.server.Health().HasSession {
		h.reply(w, http.StatusBadRequest, problem{Error: errNoSession.Error()})
		return
	}
	result, err := h.server.call(r.Context(), req.Method, req.Params, true)
	answer := publicResponse{JSONRPC: wire.RPCVersion, ID: req.ID, Result: result}
	if err != nil {
		answer.Result, answer.Error = nil, rpcError(err)
	}
	h.reply(w, http.StatusOK, answer)
}
