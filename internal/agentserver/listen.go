package agentserver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// maxPublic bounds the open connections of the HTTP port: the agent can reach it and
// must not use up the descriptors that the host's link needs.
const maxPublic = 128

// listenHTTP opens the port of the HTTP surface, where there is to be one.
func (s *Server) listenHTTP(ctx context.Context) (net.Listener, error) {
	if s.boot.HTTPPort <= 0 {
		return nil, nil
	}
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", ":"+strconv.Itoa(s.boot.HTTPPort))
	if err != nil {
		return nil, fmt.Errorf("serve HTTP: %w", err)
	}
	return &limited{Listener: ln, slots: make(chan struct{}, maxPublic), closed: make(chan struct{})}, nil
}

// limited is a listener that accepts no more while as many connections are open as it
// has slots.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// slotConn gives its slot back when it is closed.
type slotConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
