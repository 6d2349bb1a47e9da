package link

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// Server is PID 1's end: it lets the host in, and nobody else. The newest
// authenticated link is the one that counts; the older one is closed.
type Server struct {
	boot     wire.Boot
	services map[string]Handler
	outside  bool
	lobby    lobby

	mu      sync.Mutex    // guards current and changed
	current *Session      // nil without a host
	changed chan struct{} // closed and renewed when current becomes another session
}

// NewServer returns a server that serves services to the host of the run that boot
// names.
func NewServer(boot wire.Boot, services map[string]Handler) *Server {
	return &Server{
		boot: boot, services: services,
		lobby: newLobby(), changed: make(chan struct{}),
	}
}

// OnlyFromOutside makes Serve turn away, before the handshake, every peer whose
// process was started inside this PID namespace, where the kernel tells: it leaves
// the agent no way to relay a handshake of the real host. For PID 1 only; call it
// before Serve.
func (s *Server) OnlyFromOutside() { s.outside = true }

// Serve accepts hosts from ln until ctx ends, and closes ln. Connections that have
// not finished their handshake are bounded in number and time.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	defer func() { _ = ln.Close() }()
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return context.Cause(ctx)
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // out of descriptors, or a peer that left at once
			wait(ctx, acceptPause)
			continue
		case s.outside && inside(conn):
			_ = conn.Close()
			continue
		}
		leave, ok := s.lobby.enter(ctx, conn)
		if !ok {
			_ = conn.Close()
			continue
		}
		conns.Go(func() { _ = s.serveConn(ctx, conn, leave) })
	}
}

// acceptPause keeps a failing Accept from spinning.
const acceptPause = 10 * time.Millisecond

// ServeConn serves one connection that came by another way than a listener, until
// it ends. The error is that of the handshake.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) error {
	return s.serveConn(ctx, conn, func() {})
}

func (s *Server) serveConn(ctx context.Context, conn net.Conn, leave func()) error {
	err := ServerHandshake(ctx, conn, s.boot)
	leave()
	if err != nil {
		_ = conn.Close()
		return err
	}
	session, err := NewSession(conn, false)
	if err != nil {
		_ = conn.Close()
		return err
	}
	s.replace(nil, session)
	defer s.replace(session, nil)
	_ = session.Serve(ctx, s.services) // an ended link is an end in order
	return nil
}

// replace makes next the current session, if the current one is only or only is
// nil, and closes the one before.
func (s *Server) replace(only, next *Session) {
	s.mu.Lock()
	old := s.current
	if only != nil && old != only {
		s.mu.Unlock()
		return
	}
	s.current = next
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
}

// Host returns the current link, or nil, and a channel that is closed when that
// changes.
func (s *Server) Host() (*Session, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.changed
}

// answerTime bounds how long a host that is there may take to answer [Server.Open].
const answerTime = 30 * time.Second

// Open asks the host for a service. While there is no host it waits for one, up to
// grace; the error is then [ErrNoHost].
func (s *Server) Open(ctx context.Context, service string, grace time.Duration) (net.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		session, changed := s.Host()
		if session != nil {
			conn, err := ask(ctx, session, service)
			if !errors.Is(err, ErrClosed) {
				return conn, err
			}
			// The link broke meanwhile: its server is about to say so.
		}
		select {
		case <-changed:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, ErrNoHost
		}
	}
}

func ask(ctx context.Context, host *Session, service string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return host.Open(ctx, service)
}

// wait pauses for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
