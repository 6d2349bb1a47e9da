package runner

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// maxPublished bounds the connections to a published agent server.
const maxPublished = 64

// publish opens the agent server's HTTP surface on the host for as long as the run
// lives, and carries it over the link: no port of the sandbox is involved, whatever
// its network is. The returned function closes it and waits.
func (x *execution) publish(ctx context.Context) (stop func(), err error) {
	if x.spec.PublishAgent == "" {
		return func() {}, nil
	}
	network := "tcp"
	if addr, err := netip.ParseAddrPort(x.spec.PublishAgent); err == nil && addr.Addr().Is4() {
		network = "tcp4" // 0.0.0.0 is not [::]
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, x.spec.PublishAgent)
	if err != nil {
		return nil, errs.New("runner.publish", errs.Conflict, "use --publish-agent=127.0.0.1:0 for a free port", "publish the agent server: %w", err)
	}
	x.story.notice("info", fmt.Sprintf("the agent server is at http://%s; a token for it: insightscli show %s --token", l.Addr(), x.spec.Run.Short()))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxPublished)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed by stop
			}
			select {
			case slots <- struct{}{}:
			default:
				_ = conn.Close() // more than anybody needs
				continue
			}
			wg.Go(func() {
				defer func() { <-slots }()
				x.carry(ctx, conn)
			})
		}
	})
	return func() {
		cancel()
		_ = l.Close() // ends Accept
		wg.Wait()
	}, nil
}

// carry joins one connection with the agent server.
func (x *execution) carry(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	client, err := x.runner.Client(x.spec.Run)
	if err != nil {
		return // the link is being made again; clients try again
	}
	stream, err := client.Open(ctx, wire.ServiceHTTP)
	if err != nil {
		_, _ = fmt.Fprint(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return
	}
	Join(ctx, conn, stream)
}

// Join copies both ways between two connections until either ends or ctx is done,
// and closes both.
func Join(ctx context.Context, a, b net.Conn) {
	var once sync.Once
	end := func() {
		once.Do(func() {
			_ = a.Close() // one of them is gone already
			_ = b.Close()
		})
	}
	defer context.AfterFunc(ctx, end)()
	var wg sync.WaitGroup
	wg.Go(func() { defer end(); _, _ = io.Copy(a, b) })
	wg.Go(func() { defer end(); _, _ = io.Copy(b, a) })
	wg.Wait()
}
