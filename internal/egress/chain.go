package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// ProxyFunc returns which proxy a URL is reached through, by the values of HTTP_PROXY,
// HTTPS_PROXY and NO_PROXY.
func ProxyFunc(httpProxy, httpsProxy, noProxy string) func(*url.URL) (*url.URL, error) {
	return (&httpproxy.Config{HTTPProxy: httpProxy, HTTPSProxy: httpsProxy, NoProxy: noProxy}).ProxyFunc()
}

// proxyFor returns the proxy of a place, nil for none. Port 80 is plain HTTP's; all others
// go the way of https.
func (g *Gate) proxyFor(p place) (*url.URL, error) {
	if g.cfg.Proxy == nil {
		return nil, nil
	}
	u := &url.URL{Scheme: "https", Host: p.String()}
	if p.port == 80 {
		u.Scheme = "http"
	}
	via, err := g.cfg.Proxy(u)
	if err != nil {
		return nil, errors.New("the proxy of this machine is not a valid URL") // it may hold a password
	}
	return via, nil
}

// openVia asks a proxy for the connection. The proxy resolves the name; so that it is not
// led to an address which is not public, the name is resolved here too: where every public
// address is allowed the proxy is given the one that was checked, and where names are
// allowed, which somebody has chosen, a name that only the proxy knows is taken as it is.
func (g *Gate) openVia(ctx context.Context, via *url.URL, p place) (net.Conn, error) {
	addrs, err := g.resolve(ctx, p)
	var refused *denial
	open := g.cfg.Set.Public()
	if errors.As(err, &refused) || open && err != nil {
		return nil, err
	}
	address := p.String()
	if open {
		address = netip.AddrPortFrom(addrs[0], p.port).String()
	}
	conn, err := g.dialProxy(ctx, via)
	if err != nil {
		return nil, fmt.Errorf("connect to the proxy of this machine: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := connectVia(conn, via, address)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask the proxy of this machine: %w", err)
	}
	return tunnel, nil
}

// dialProxy connects to a proxy, which may be at a private address.
func (g *Gate) dialProxy(ctx context.Context, via *url.URL) (net.Conn, error) {
	host, port := via.Hostname(), via.Port()
	if host == "host.docker.internal" {
		host = "127.0.0.1" // what the name means to a container, for a process of the host
	}
	if port == "" {
		port = "80"
		if via.Scheme == "https" {
			port = "443"
		}
	}
	switch via.Scheme {
	case "http", "https":
	default:
		return nil, fmt.Errorf("proxies of the scheme %q are not known", via.Scheme)
	}
	conn, err := g.cfg.Dial(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil || via.Scheme == "http" {
		return conn, err
	}
	secured := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: g.cfg.RootCAs, MinVersion: tls.VersionTLS12})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// connectVia sends CONNECT. What the server behind said already is not lost.
func connectVia(conn net.Conn, via *url.URL, address string) (net.Conn, error) {
	req := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if via.User != nil {
		password, _ := via.User.Password()
		pair := base64.StdEncoding.EncodeToString([]byte(via.User.Username() + ":" + password))
		req += "Proxy-Authorization: Basic " + pair + "\r\n"
	}
	if _, err := io.WriteString(conn, req+"\r\n"); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(io.LimitReader(conn, maxHead), 4<<10)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close() // a tunnel has none
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %d", res.StatusCode)
	}
	ahead, err := in.Peek(in.Buffered())
	if err != nil || len(ahead) == 0 {
		return conn, err
	}
	return &aheadConn{Conn: conn, ahead: ahead}, nil
}

// aheadConn is a connection of which some has been read already.
type aheadConn struct {
	net.Conn
	ahead []byte
}

// Read implements net.Conn.
func (c *aheadConn) Read(b []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// CloseWrite ends what is written.
func (c *aheadConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends what is written to a connection, and no more where it can. A stream of the
// link can still be read after its Close.
func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
