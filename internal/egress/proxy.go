package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/gateway/onestream"
)

// plainProxy answers clients that take the listener for a proxy and ask it for plain HTTP.
// Every request is judged, taken apart and written anew.
type plainProxy struct {
	gate      *Gate
	transport *http.Transport
	forward   *httputil.ReverseProxy
}

func newPlainProxy(g *Gate) *plainProxy {
	p := &plainProxy{gate: g}
	p.transport = &http.Transport{
		DialContext: p.dial, DisableCompression: true,
		MaxIdleConns: 32, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: 10 * time.Minute,
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.URL.Host
			if !strings.EqualFold(r.In.Header.Get("Upgrade"), "websocket") {
				r.Out.Header.Del("Upgrade") // HTTP/2 would not be looked into
				r.Out.Header.Del("Connection")
			}
		},
		Transport: p.transport, FlushInterval: -1, ErrorHandler: p.failed, ErrorLog: log.New(io.Discard, "", 0),
	}
	return p
}

func (p *plainProxy) close() { p.transport.CloseIdleConnections() }

// dial connects for the transport; the place was judged with each request.
func (p *plainProxy) dial(ctx context.Context, _, address string) (net.Conn, error) {
	to, err := proxyPlace(address, 80)
	if err != nil {
		return nil, err
	}
	return p.gate.open(ctx, to)
}

// failed answers a request that was allowed, and cannot be carried out.
func (p *plainProxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	to, _ := proxyPlace(r.URL.Host, 80)
	if c, ok := w.(*countedWriter); ok {
		c.failed = true
	}
	p.gate.refused(to, err, nil)
	writeRefusal(w, to, err)
}

// writeRefusal answers 403 where the policy refuses, and 502 where the network does.
func writeRefusal(w http.ResponseWriter, to place, err error) {
	var d *denial
	if !errors.As(err, &d) {
		http.Error(w, "insightscli: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("X-Insights-Denied", "network-policy")
	http.Error(w, pageText(to, d.reason, d.rule), http.StatusForbidden)
}

// serveProxy serves a client of the proxy: any number of requests, or one tunnel.
func (g *Gate) serveProxy(ctx context.Context, conn net.Conn) error {
	h := &proxyClient{gate: g, tunnel: make(chan *passage, 1)}
	err := onestream.Serve(ctx, conn, h)
	h.handling.Wait() // of a tunnel, Serve ends when the server lets go of the connection
	select {
	case p := <-h.tunnel:
		g.carry(ctx, p)
	default:
	}
	return err
}

// proxyClient is one connection of a client of the proxy.
type proxyClient struct {
	gate     *Gate
	handling sync.WaitGroup
	tunnel   chan *passage
}

// ServeHTTP implements [http.Handler].
func (c *proxyClient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.handling.Add(1)
	defer c.handling.Done()
	if r.Method == http.MethodConnect {
		c.connect(w, r)
		return
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil {
		http.Error(w, "insightscli: this is a proxy; it takes CONNECT and http URLs", http.StatusBadRequest)
		return
	}
	to, err := proxyPlace(r.URL.Host, 80)
	if err != nil {
		http.Error(w, "insightscli: "+err.Error(), http.StatusBadRequest)
		return
	}
	allowed, err := c.gate.judgePlain(to, r)
	if err != nil {
		c.gate.refused(to, err, nil)
		writeRefusal(w, to, err)
		return
	}
	body := &countedBody{ReadCloser: r.Body}
	r.Body = body
	counted := &countedWriter{ResponseWriter: w}
	c.gate.plain.forward.ServeHTTP(counted, r)
	if counted.failed {
		return // and that is recorded
	}
	c.gate.record(Record{
		Name: to.name, Port: to.port, Verdict: "allow", Rule: allowed,
		Request: short(r.Method), Sent: body.n.Load(), Received: counted.n,
	})
}

// judgePlain judges one request to the proxy.
func (g *Gate) judgePlain(to place, r *http.Request) (allowed string, err error) {
	if allowed, err = g.judge(to); err != nil {
		return "", err
	}
	switch set := g.cfg.Set; {
	case to.port == 443 && !set.Public():
		return "", deny("", "%s: on port 443 only TLS is let through", to)
	case set.Requests(to.name, to.port):
		var ok bool
		if allowed, ok = set.Request(to.name, to.port, r.Method, r.URL.RequestURI()); !ok {
			return "", deny("", "the network policy does not allow %s http://%s%s", short(r.Method), to, short(r.URL.EscapedPath()))
		}
	}
	return allowed, nil
}

// connect makes a tunnel, in which the client is judged like one that was captured.
func (c *proxyClient) connect(w http.ResponseWriter, r *http.Request) {
	to, err := proxyPlace(r.RequestURI, 0)
	if err != nil {
		http.Error(w, "insightscli: "+err.Error(), http.StatusBadRequest)
		return
	}
	allowed, err := c.gate.judge(to)
	var target net.Conn
	if err == nil {
		target, err = c.gate.open(r.Context(), to)
	}
	if err != nil {
		c.gate.refused(to, err, nil)
		writeRefusal(w, to, err)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		return
	}
	ahead, _ := rw.Reader.Peek(rw.Reader.Buffered())
	client := &inlet{Conn: conn, in: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(ahead), conn), lookAhead)}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = target.Close()
		return
	}
	c.tunnel <- newPassage(to, allowed, client, target)
}

var errAuthority = errors.New("the host of the request is malformed")

// proxyPlace reads host[:port]. A port of 0 means that there must be one.
func proxyPlace(authority string, port uint16) (place, error) {
	host, text, err := net.SplitHostPort(authority)
	if err != nil {
		host, text = strings.TrimSuffix(strings.TrimPrefix(authority, "["), "]"), ""
	}
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return place{}, errAuthority
		}
		port = uint16(n)
	}
	if host == "" || port == 0 || len(host) > 253 || short(host) != host || strings.ContainsAny(host, "%/@\\?#") {
		return place{}, errAuthority
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return place{addr: addr, port: port}, nil
	}
	return place{name: strings.ToLower(host), port: port}, nil
}

// countedBody counts what is read of the body of a request.
type countedBody struct {
	io.ReadCloser
	n atomic.Int64
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// countedWriter counts what is written of the body of a response.
type countedWriter struct {
	http.ResponseWriter
	n      int64
	failed bool // there is no response, but a refusal
}

// Write implements io.Writer.
func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// Unwrap gives the writer below to http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
