// Package capture is the network of a sandbox that has none, as far as PID 1 has a part in
// it. Package jail has led every connection of the agent to its listeners; here each is
// offered to the host, over a stream of the link of its own, and joined with that stream if
// the host takes it. Names get addresses of a block of ours (wire.EgressAddresses), so that
// the host learns for which name an address was dialled.
//
// The package decides nothing about a connection: it says what was dialled, and the host
// judges it, resolves the name and dials. It decides which names exist, by the rules that the
// host has given it, and that is no boundary either: nothing is ever forwarded, so that a
// name tells nobody anything.
//
// Without a host, and whenever one does not answer in time, a connection is reset at once;
// nothing waits here for a host to come back. All that the agent can make grow is bounded:
// connections, names, waiting questions.
//
// Package capture uses golang.org/x/net/dns/dnsmessage for the messages of DNS.
package capture

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/relay"
	"github.com/Insights/insightscli/internal/link"
)

const (
	// maxConns bounds the connections that are carried or judged at the same time.
	// Further ones are reset.
	maxConns = 4096
	// acceptPause keeps a failing Accept from spinning.
	acceptPause = 10 * time.Millisecond
	// sayEvery is between two lines of the log about the same.
	sayEvery = 10 * time.Second
)

// Names tells which names exist for the agent, and by which rule (rule.Set).
type Names interface {
	Name(name string) (rule string, ok bool)
}

// Config is what a Server needs. The listeners are closed by Serve.
type Config struct {
	TCP   []*net.TCPListener
	DNS   *net.TCPListener
	UDP   *net.UDPConn
	Local bool // a connection's local address is the one that was dialled
	Names Names
	// Open asks the host for a stream of wire.ServiceEgress, and does not wait for a host.
	Open func(ctx context.Context) (net.Conn, error)
	Log  *slog.Logger // nil: nothing is logged
}

// Server carries the connections of one sandbox.
type Server struct {
	Config
	relay  relay.Relay
	table  *table
	slots  chan struct{}
	teller *teller

	mu   sync.Mutex // guards said
	said time.Time
}

// New returns a server that serves nobody yet.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Config: c, table: newTable(), slots: make(chan struct{}, min(maxConns, descriptors()/2))}
	s.relay.Abrupt = true
	s.teller = newTeller(s.ask)
	return s
}

// Serve carries connections and answers for names until ctx ends, and returns when nothing
// of them is left.
func (s *Server) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	var all sync.WaitGroup
	for _, ln := range s.TCP {
		all.Go(func() { s.serve(ctx, ln) })
	}
	all.Go(func() { s.serveUDP(ctx) })
	all.Go(func() { s.serveTCP(ctx) })
	all.Go(func() { s.teller.run(ctx) })
	all.Wait()
	s.close()
}

func (s *Server) close() {
	for _, ln := range s.TCP {
		_ = ln.Close()
	}
	_ = s.DNS.Close()
	_ = s.UDP.Close()
}

// serve accepts the connections of one listener.
func (s *Server) serve(ctx context.Context, ln *net.TCPListener) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := ln.AcceptTCP()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				relay.Cut(conn)
			}
			return
		case err != nil: // out of descriptors, or a client that left at once
			pause(ctx, acceptPause)
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			relay.Cut(conn)
			s.say("connections are refused: as many as can be are open", "most", cap(s.slots))
			continue
		}
		conns.Go(func() {
			defer func() { <-s.slots }()
			s.carry(ctx, conn)
		})
	}
}

// carry joins one connection with a stream that the host has agreed to, or resets it.
func (s *Server) carry(ctx context.Context, conn *net.TCPConn) {
	to, err := s.dialled(conn)
	if err != nil {
		relay.Cut(conn)
		s.Log.Debug("no destination", "err", err)
		return
	}
	req, release := s.request(to)
	defer release()
	stream, err := s.ask(ctx, req)
	if err != nil {
		relay.Cut(conn)
		s.Log.Debug("refused", "to", to, "name", req.Name, "err", err)
		return
	}
	s.relay.Join(ctx, conn, stream, link.Lost(stream))
}

// dialled returns the address that the client of a connection has dialled.
func (s *Server) dialled(conn *net.TCPConn) (netip.AddrPort, error) {
	if s.Local {
		to, ok := conn.LocalAddr().(*net.TCPAddr)
		if !ok {
			return netip.AddrPort{}, errors.New("not a TCP address")
		}
		addr := to.AddrPort()
		return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
	}
	return originalDestination(conn)
}

// say writes a line that may be true very often.
func (s *Server) say(message string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.said) > sayEvery {
		s.said = now
		s.Log.Warn(message, args...)
	}
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
