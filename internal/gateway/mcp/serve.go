package mcp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/gateway/onestream"
	"github.com/Insights/insightscli/internal/secret"
)

// Bounds of what an agent may send.
const (
	maxBody     = 8 << 20  // of one request
	maxBodies   = 32 << 20 // of all requests that are going on; others wait
	maxRequests = 64       // with a body, at the same time
	maxSessions = 64       // of one server; the oldest ends
)

// ServeConn serves HTTP on one stream of the link until either side closes it, ctx is
// done or the hub is closed. It closes conn.
func (h *Hub) ServeConn(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-h.quit:
			cancel()
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cancel() // before the wait
	return onestream.Serve(ctx, conn, http.HandlerFunc(h.serveLink))
}

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
		http.Error(w, fmt.Sprintf("this run has no MCP server %q", cut(name, maxStep)), http.StatusNotFound)
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
