package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/secret"
)

// maxAnswer bounds one answer of a server, in bytes.
const maxAnswer = 16 << 20

// errTooMuch is what a longer answer ends in.
var errTooMuch = fmt.Errorf("an answer of more than %d MiB", maxAnswer>>20)

// httpDialer reaches a server over streamable HTTP.
func httpDialer(address string, headers map[string]secret.String) dialer {
	return func(context.Context) (*pipe, error) {
		u, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(u.Hostname(), "host.docker.internal") {
			// The name is good inside of containers only, and servers that listen on
			// loopback refuse requests that carry it.
			u.Host = net.JoinHostPort("127.0.0.1", portOf(u))
		}
		pool, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("the default HTTP transport was replaced")
		}
		pool = pool.Clone()
		quit := make(chan struct{})
		t := &sdk.StreamableClientTransport{
			Endpoint:     u.String(),
			MaxEventSize: maxAnswer,
			HTTPClient: &http.Client{
				Transport:     &upstreamHTTP{pool: pool, host: u.Host, headers: headers, quit: quit},
				CheckRedirect: sameHost,
			},
		}
		return &pipe{transport: t, kill: func() { close(quit); pool.CloseIdleConnections() }}, nil
	}
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// sameHost keeps requests, which carry credentials, at the server that they are for.
func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return fmt.Errorf("it redirects to %q", req.URL.Host)
	}
	return nil
}

// upstreamHTTP adds the headers of a server, bounds what it answers, and ends every
// request when quit is closed.
type upstreamHTTP struct {
	pool    *http.Transport
	host    string
	headers map[string]secret.String
	quit    <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (t *upstreamHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	req = req.Clone(ctx)
	if req.URL.Host == t.host {
		for k, v := range t.headers {
			req.Header.Set(k, v.Reveal())
		}
	}
	over := make(chan struct{})
	go func() { // ends with the body, which the SDK closes
		select {
		case <-t.quit:
			cancel()
		case <-over:
		}
	}()
	resp, err := t.pool.RoundTrip(req)
	if err != nil {
		close(over)
		cancel()
		return nil, err
	}
	body := &answer{Reader: resp.Body, body: resp.Body, end: sync.OnceFunc(func() { close(over); cancel() })}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body.Reader = &bounded{r: resp.Body, left: maxAnswer, over: errTooMuch}
	}
	resp.Body = body
	return resp, nil
}

// answer is the body of an answer.
type answer struct {
	io.Reader

	body io.Closer
	end  func()
}

// Close implements io.Closer. It may be called more than once.
func (a *answer) Close() error {
	a.end()
	return a.body.Close()
}

// headersOf are the headers of the Insights server.
func (s InsightsServer) headersOf() map[string]secret.String {
	h := map[string]secret.String{
		"Authorization":          secret.New("Bearer " + s.Token.Reveal()),
		"x-insights-mcp-version": secret.New("2"),
		"x-insights-read-only":   secret.New(fmt.Sprint(s.ReadOnly)),
		relayHeader:              secret.New("1"),
	}
	if s.ProjectID != "" {
		h["x-insights-project-id"] = secret.New(s.ProjectID)
	}
	return h
}

// connectTime bounds connecting to one server.
const connectTime = 10 * time.Second
