package mcp

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/Insights/insightscli/internal/secret"
)

// relayHeader marks the requests of a relay. One that comes back to us was sent to our own
// address, where nobody else is.
const relayHeader = "x-insightscli-relay"

// Mux serves the hubs of several runs on TCP: /mcp is the Insights relay of the run whose
// token a request carries, /mcp/NAME and /NAME are its server of that name.
//
// It answers requests for loopback names and host.docker.internal only, and none that a
// page in a browser makes: those carry an Origin, which no agent sends.
type Mux struct {
	// Lookup finds the hub of the run that token belongs to, and checks the token. It is
	// called for every request.
	Lookup func(ctx context.Context, token secret.String) (*Hub, error)
}

// ServeHTTP implements http.Handler.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "" || !localName(r.Host) {
		http.Error(w, "not for browsers, nor for another host", http.StatusForbidden)
		return
	}
	if r.Header.Get(relayHeader) != "" {
		http.Error(w, "this is insightscli itself, and not the Insights MCP server", http.StatusLoopDetected)
		return
	}
	token, ok := bearer(r)
	if !ok {
		unauthorized(w)
		return
	}
	h, err := m.Lookup(r.Context(), token)
	if err != nil || h == nil {
		unauthorized(w)
		return
	}
	name := strings.Trim(r.URL.Path, "/")
	if name == "mcp" {
		name = Insights
	}
	h.serveNamed(w, r, strings.TrimPrefix(name, "mcp/"))
}

// localName reports whether a Host header names this machine.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || host == "host.docker.internal" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
