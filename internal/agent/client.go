// Package agent is the host's side of an agent server: it makes the handshake on a
// fresh link, starts the session, follows its events, says things to it, and runs
// commands and transfers in its sandbox.
//
// A [Client] lives as long as one link. When the link breaks every method returns
// an error that wraps [ErrLost]; the caller opens another link, connects again and
// follows from the last frame that is durable. Nothing is retried in here.
//
// Everything that comes from the sandbox is hostile: it is bounded, never
// interpreted beyond its shape, and its words are made safe before they become
// part of an error.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// ErrLost is wrapped by the error of every method whose link broke.
var ErrLost = errors.New("the link to the sandbox is lost")

// Client is one link to one agent server. All methods may be called at the same
// time.
type Client struct {
	session *link.Session
	rpc     *rpc
	acks    *acks
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Connect makes the handshake on conn and serves services to the sandbox, until
// Close. It owns conn, also when it returns an error. ctx bounds the connecting
// only.
func Connect(ctx context.Context, conn net.Conn, key link.HostKey, services map[string]link.Handler) (*Client, error) {
	if err := link.HostHandshake(ctx, conn, key); err != nil {
		_ = conn.Close()
		return nil, handshakeError(err)
	}
	session, err := link.NewSession(conn, true)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to the agent server: %w", err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &Client{session: session, acks: newAcks(), cancel: cancel}
	c.running.Go(func() { _ = session.Serve(life, services) })
	c.running.Go(func() { c.acks.run(session.Done()) })
	stream, err := c.open(ctx, "agent.Connect", wire.ServiceRPC)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.rpc = newRPC(stream)
	c.running.Go(c.rpc.read)
	return c, nil
}

func handshakeError(err error) error {
	hint := ""
	if errors.Is(err, link.ErrVersion) {
		hint = "follow the run with the version of insightscli that started it"
	}
	return errs.New("agent.Connect", errs.Unavailable, hint, "connect to the agent server: %w", err)
}

// Lost is closed when the link is gone.
func (c *Client) Lost() <-chan struct{} { return c.session.Done() }

// Close ends the link; the sandbox goes on. It returns when nothing of the client
// runs any more, and may be called again.
func (c *Client) Close() error {
	c.cancel()
	err := c.session.Close()
	c.running.Wait()
	return err
}

// Open opens a raw stream to a service of PID 1, for those who speak its protocol
// themselves.
func (c *Client) Open(ctx context.Context, service string) (net.Conn, error) {
	return c.open(ctx, "agent.Open", service)
}

func (c *Client) open(ctx context.Context, op, service string) (net.Conn, error) {
	conn, err := c.session.Open(ctx, service)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, link.ErrClosed):
		return nil, lost(op, err)
	case errors.Is(err, link.ErrRefused):
		return nil, errs.New(op, errs.Conflict, "", "%w", err)
	}
	return nil, err
}

// lost is the error of a broken link.
func lost(op string, err error) error {
	if err == nil {
		return errs.New(op, errs.Unavailable, "", "%w", ErrLost)
	}
	return errs.New(op, errs.Unavailable, "", "%w: %w", ErrLost, err)
}

// safe makes words of the sandbox one short line that a terminal can be shown.
func safe(s string) string {
	const most = 300
	s = strings.ToValidUTF8(s[:min(len(s), 4*most)], "?")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '?'
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(s)
}
