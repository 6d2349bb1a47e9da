package mcp

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

// Bounds of what an agent may send.
const (
	maxBody     = 8 << 20  // of one request
	maxBodies   = 32 << 20 // of all requests that are going on; others wait
	maxHeaders  = 64 << 10 // of one request
	maxRequests = 64       // with a body, at the same time
	maxSessions = 64       // of one server; the oldest ends
)

// ServeConn serves HTTP on one stream of the link until either side closes it, ctx is
// done or the hub is closed. It closes conn.
func (h *Hub) ServeConn(ctx context.Context, conn net.Conn) error {
	l := &single{conn: conn, done: make(chan struct{})}
	srv := &http.Server{
		Handler:           http.HandlerFunc(h.serveLink),
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       10 * time.Minute,
		MaxHeaderBytes:    maxHeaders,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // complaints about the agent's requests
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				l.end()
			}
		},
	}
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-h.quit:
		case <-over:
		}
		_ = srv.Close()
	})
	_ = srv.Serve(l) // ends by a closed listener, whatever the reason
	<-l.done
	close(over)
	watch.Wait()
	return ctx.Err()
}

// single is a listener with one connection.
type single struct {
	conn net.Conn
	done chan struct{}
	mu   sync.Mutex // guards given
	given,
	ended bool
}

// Accept implements net.Listener: the connection, and when it is over, an error.
func (l *single) Accept() (net.Conn, error) {
	l.mu.Lock()
	first := !l.given
	l.given = true
	l.mu.Unlock()
	if first {
		return l.conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *single) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		close(l.done)
	}
}

// Close implements net.Listener. The server closes the connection itself.
func (l *single) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.given { // the server was closed before it began
		l.given = true
		_ = l.conn.Close()
		l.ended = true
		close(l.done)
	}
	return nil
}

// Addr implements net.Listener.
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }

// serveLink serves a request of the run's own sandbox.
func (h *Hub) serveLink(w http.ResponseWriter, r *http.Request) {
	token, ok := bearer(r)
	if !ok || h.cfg.CheckToken(r.Context(), token) != nil {
		unauthorized(w)
		return
	}
	name, _ := strings.CutPrefix(r.URL.Path, "/")
	h.serveNamed(w, r, strings.TrimSuffix(name, "/"))
}

// serveNamed serves a request that was let in.
func (h *Hub) serveNamed(w http.ResponseWriter, r *http.Request, name string) {
	select {
	case <-h.ready:
	case <-r.Context().Done():
		return
	case <-h.quit:
	}
	h.mu.Lock()
	rt := h.routes[name]
	h.mu.Unlock()
	if rt == nil {
		http.Error(w, "no such MCP server in this run", http.StatusNotFound)
		return
	}
	r.Header.Del("Authorization") // no tool has any business with it
	if r.Method == http.MethodPost {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		default:
			http.Error(w, "too many requests at the same time", http.StatusServiceUnavailable)
			return
		}
		size := r.ContentLength
		if size < 0 || size > maxBody {
			size = maxBody
		}
		if h.bodies.Acquire(r.Context(), size) != nil {
			return // the client has gone
		}
		defer h.bodies.Release(size)
		if r.Header.Get("Mcp-Session-Id") == "" {
			h.evict(rt)
		}
	}
	rt.handler.ServeHTTP(w, r)
}

// bearer returns the token of a request.
func bearer(r *http.Request) (secret.String, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return secret.New(token), ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "the token of the run is missing, wrong or no longer good", http.StatusUnauthorized)
}
