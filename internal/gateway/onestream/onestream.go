// Package onestream serves HTTP on connections that come one at a time: the streams of a
// link. What its gateways have in common is here: the bounds of a client that is hostile,
// and the end, after which nothing of a connection runs any more.
package onestream

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of a client.
const (
	headerTime = 30 * time.Second // for the head of a request
	idleTime   = 10 * time.Minute // between two requests
	maxHeader  = 64 << 10         // bytes of a head
)

// Serve serves one connection until either side closes it or ctx is done, and closes it.
func Serve(ctx context.Context, conn net.Conn, h http.Handler) error {
	l := &listener{conn: conn, over: make(chan struct{})}
	return serve(ctx, l, h, func() { _ = l.Close() })
}

// ServeAll serves the connections of l until ctx is done, and closes l.
func ServeAll(ctx context.Context, l net.Listener, h http.Handler) error {
	return serve(ctx, l, h, func() {})
}

// serve calls closed after each connection's end.
func serve(ctx context.Context, l net.Listener, h http.Handler, closed func()) error {
	var conns sync.WaitGroup
	srv := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // complaints about the client, who could fill it
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				conns.Done()
				closed()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(l)
	conns.Wait()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// listener has one connection.
type listener struct {
	mu   sync.Mutex
	conn net.Conn // until it was accepted
	once sync.Once
	over chan struct{}
}

// Accept implements [net.Listener]: the connection, and when it is over, an error.
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.over
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.over) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn = nil
	return conn.Close() // it was never served
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return linkAddr{} }

type linkAddr struct{}

// Network implements [net.Addr].
func (linkAddr) Network() string { return "link" }

// String implements [net.Addr].
func (linkAddr) String() string { return "link" }
