// Package api carries the requests of a sandbox to the Insights API, which the host
// reaches at SANDBOX_API_URL and the sandbox at a loopback port of its own. The caller
// authenticates itself, with the token of its run: nothing is added to a request.
//
// Only requests to that one address leave: what a sandbox writes into Host or into the
// request line decides nothing. Bodies are streamed; the answer is told as it comes.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/gateway/onestream"
)

// Proxy is the way to one API. It is an http.Handler.
type Proxy struct {
	base  *url.URL
	proxy *httputil.ReverseProxy
}

// New returns the way to the API at base. For the host's own calls host.docker.internal
// means this machine.
func New(base string) (*Proxy, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, errors.New("SANDBOX_API_URL is not a URL")
	}
	if u.Hostname() == "host.docker.internal" {
		u.Host = strings.Replace(u.Host, "host.docker.internal", "127.0.0.1", 1)
	}
	p := &Proxy{base: u}
	p.proxy = &httputil.ReverseProxy{
		Rewrite:       p.rewrite,
		FlushInterval: -1,
		ErrorHandler:  p.unreachable,
		ErrorLog:      log.New(io.Discard, "", 0), // a sandbox could fill it
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, ControlContext: noMetadata}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 5 * time.Minute,
			MaxIdleConnsPerHost:   8,
			IdleConnTimeout:       time.Minute,
		},
	}
	return p, nil
}

// noMetadata refuses the addresses at which clouds give away the credentials of a
// machine, whatever name leads there: SANDBOX_API_URL may come from a file of the
// repository that the sandbox works on.
func noMetadata(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); ip.IsLinkLocalUnicast() || ip == netip.MustParseAddr("fd00:ec2::254") {
		return errors.New("a link-local address is no Insights API")
	}
	return nil
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.base)
	r.Out.Host = p.base.Host
	r.Out.Header.Del("Upgrade") // a stream of a sandbox carries HTTP, and ends with its server
	r.Out.Header.Del("Connection")
}

// unreachable tells the caller, and nobody else, that there is no API.
func (p *Proxy) unreachable(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	body, _ := json.Marshal(map[string]string{"error": "the Insights API does not answer at " + p.base.Redacted()}) // of a string
	_, _ = w.Write(append(body, '\n'))
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.proxy.ServeHTTP(w, r) }

// ServeConn serves HTTP on one stream of a sandbox, until it or ctx ends. Nothing is
// being served any more when it returns.
func (p *Proxy) ServeConn(ctx context.Context, conn net.Conn) error {
	return onestream.Serve(ctx, conn, p)
}
