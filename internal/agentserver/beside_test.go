//go:build unix

package agentserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// TestBeside: what runs beside the server is refused at once while there is no host, has its
// streams when there is one, and ends with the server, which waits for it.
func TestBeside(t *testing.T) {
	tried, ended := make(chan error), make(chan struct{})
	again := make(chan struct{})
	s := newSandboxWith(t, nil, func(c *agentserver.Config) {
		c.Boot.HostGrace = hangs
		c.Beside = func(ctx context.Context, s *agentserver.Server) {
			defer close(ended)
			for {
				conn, err := s.OpenNow(ctx, wire.ServiceEgress)
				if err == nil {
					_, err = io.ReadAll(conn)
					_ = conn.Close()
				}
				select {
				case tried <- err:
				case <-ctx.Done():
					return
				}
				select {
				case <-again:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	if err := <-tried; !errors.Is(err, link.ErrNoHost) {
		t.Errorf("without a host: %v", err)
	}
	c, err := agent.Connect(t.Context(), s.ln.dial(t), s.key, map[string]link.Handler{
		wire.ServiceEgress: func(context.Context, net.Conn) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Health(t.Context()); err != nil { // the server has the link by now
		t.Fatal(err)
	}
	again <- struct{}{}
	if err := <-tried; err != nil {
		t.Errorf("with one: %v", err)
	}
	s.stop()
	<-s.ended
	<-ended
}

// TestNotices: what a sandbox does without is told before all else.
func TestNotices(t *testing.T) {
	s := newSandboxWith(t, nil, func(c *agentserver.Config) { c.Notices = []string{"no nf_tables"} })
	c := s.connect()
	s.start(c, "true")
	var first wire.Frame
	if err := c.Follow(t.Context(), 0, func(f wire.Frame) error {
		if f.Seq == 1 {
			first = f
			first.Data = append([]byte(nil), f.Data...)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if first.Method != "_insights/console" || !strings.Contains(string(first.Data), "no nf_tables") {
		t.Errorf("%s %s", first.Method, first.Data)
	}
}
