package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/relay"
	"github.com/Insights/insightscli/internal/link"
)

const (
	// maxPort bounds the connections of one service that are held or carried, each of
	// which may fill a window of the host's memory. Further ones wait in the kernel.
	maxPort = 32
	// lookAway is between two looks whether a client that is held has gone.
	lookAway = 500 * time.Millisecond
	// refuseTime bounds the wait for a refused client to take its answer.
	refuseTime = 5 * time.Second
	// retryAfter is told to a client that is refused, in seconds.
	retryAfter = 5
	// acceptPause keeps a failing Accept from spinning.
	acceptPause = 10 * time.Millisecond
)

// port is the loopback port of one service of the host.
type port struct {
	service string
	ln      *net.TCPListener
	open    func(ctx context.Context, service string) (net.Conn, error)
	log     *slog.Logger
	slots   chan struct{}
	relay   relay.Relay
}

// listenPorts opens the port of every service that the host offers, on loopback only.
func (s *Server) listenPorts(ctx context.Context) ([]*port, error) {
	var ports []*port
	for _, service := range slices.Sorted(maps.Keys(s.boot.Ports)) {
		var config net.ListenConfig
		ln, err := config.Listen(ctx, "tcp4", "127.0.0.1:"+strconv.Itoa(s.boot.Ports[service]))
		if err != nil {
			closePorts(ports)
			return nil, fmt.Errorf("serve %s: %w", service, err)
		}
		ports = append(ports, &port{
			service: service, ln: ln.(*net.TCPListener), open: s.Open, log: s.log, slots: make(chan struct{}, maxPort),
		})
	}
	return ports, nil
}

func closePorts(ports []*port) {
	for _, p := range ports {
		_ = p.ln.Close()
	}
}

// serve carries connections until ctx ends, and returns when nothing of them is left.
func (p *port) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = p.ln.Close() })
	defer stop()
	defer func() { _ = p.ln.Close() }()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := p.ln.AcceptTCP()
		if err != nil {
			<-p.slots
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			wait(ctx, acceptPause) // out of descriptors, or a client that left at once
			continue
		}
		conns.Go(func() {
			defer func() { <-p.slots }()
			defer func() { _ = conn.Close() }()
			p.carry(ctx, conn)
		})
	}
}

// carry joins one connection with a stream of the host, or says why it cannot.
func (p *port) carry(ctx context.Context, conn *net.TCPConn) {
	stream, err := p.await(ctx, conn)
	switch {
	case err == nil:
		p.relay.Join(ctx, conn, stream, link.Lost(stream))
	case ctx.Err() != nil:
		relay.Cut(conn)
	default:
		p.log.Debug("refused", "service", p.service, "err", err)
		refuse(ctx, conn, p.service, err)
	}
}

// errGone is the end of a client that did not wait for the host.
var errGone = errors.New("the client has closed the connection")

// await opens the stream, and gives up when the client does: a host that comes back must
// not be given requests that nobody waits for any more, each of which may cost money. A
// client that has only ended its own direction looks the same and is refused.
func (p *port) await(ctx context.Context, conn *net.TCPConn) (net.Conn, error) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel(nil)
	looking.Go(func() {
		t := time.NewTicker(lookAway)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
			if hasGone(conn) {
				cancel(errGone)
				return
			}
		}
	})
	stream, err := p.open(ctx, p.service)
	switch {
	case err == nil && time.Since(began) > lookAway && hasGone(conn):
		relay.HangUp(stream)
		return nil, errGone
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return stream, err
}

// refuse answers a client in HTTP, which all services speak. It waits for the beginning
// of the request, since clients throw away an answer that comes before they have asked,
// and takes the rest of it after: a connection that is closed with unread bytes is reset,
// and the answer lost.
func refuse(ctx context.Context, conn *net.TCPConn, service string, err error) {
	stop := context.AfterFunc(ctx, func() { relay.Cut(conn) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(refuseTime))
	if _, err := conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return // nothing was asked
	}
	if _, err := io.WriteString(conn, refusal(service, err)); err != nil {
		return
	}
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

// refusal is the whole answer. Its body is an error as the model APIs write theirs, so
// that their clients show the message.
func refusal(service string, err error) string {
	message := service + ": " + brief(err.Error())
	body, _ := json.Marshal(map[string]any{ // strings always marshal
		"type": "error", "error": map[string]string{"type": "service_unavailable", "message": message},
	})
	var b strings.Builder
	b.WriteString("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n")
	fmt.Fprintf(&b, "Retry-After: %d\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", retryAfter, len(body))
	b.Write(body)
	return b.String()
}

// wait waits for d, and reports false if ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
