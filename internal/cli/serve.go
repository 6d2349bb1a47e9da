package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// The addresses at which the background runner serves outside clients. They are those of
// the servers whose place it takes on a developer's machine.
const (
	serveLLM = "127.0.0.1:3308"
	serveMCP = "127.0.0.1:8787"
)

// maxOutside is how many connections of outside clients each has at the same time:
// everybody on the machine can make some, and the runner needs descriptors for its runs.
const maxOutside = 128

// servable are the services that can be opened on TCP, by name.
func (v *services) servable() map[string]struct {
	addr    string
	handler http.Handler
} {
	return map[string]struct {
		addr    string
		handler http.Handler
	}{
		wire.ServiceLLM: {serveLLM, v.gateway},
		wire.ServiceMCP: {serveMCP, &v.hubs},
	}
}

// parseServe reads the value of --serve.
func parseServe(text string) ([]string, error) {
	var list []string
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if name != wire.ServiceLLM && name != wire.ServiceMCP {
			return nil, usageError("--serve: there is no service %q; there are llm and mcp", name)
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// serveTCP opens services on TCP and returns what closes them again. A port that is
// taken is refused with the name of who has it.
func (v *services) serveTCP(ctx context.Context, list []string, say func(format string, args ...any)) (stop func(), err error) {
	var open []*http.Server
	var serving sync.WaitGroup
	stop = func() {
		for _, s := range open {
			_ = s.Close()
		}
		serving.Wait()
	}
	for _, name := range list {
		s := v.servable()[name]
		var lc net.ListenConfig
		ln, err := lc.Listen(ctx, "tcp4", s.addr)
		if err != nil {
			stop()
			return nil, portTaken(name, s.addr, err)
		}
		ln = netutil.LimitListener(ln, maxOutside)
		srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
		open = append(open, srv)
		serving.Go(func() {
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				say("serve %s: %v", name, err)
			}
		})
		say("serving %s at http://%s", name, s.addr)
	}
	return stop, nil
}

func portTaken(name, addr string, cause error) error {
	_, port, _ := net.SplitHostPort(addr)
	if who := holderOf(port); who != "" {
		return errs.New("cli.start", errs.Conflict, "end it, or leave "+name+" out of --serve", "serve %s: %s is taken by %s", name, addr, who)
	}
	return errs.New("cli.start", errs.Conflict, fmt.Sprintf("see who has it: ss -ltnp 'sport = :%s'", port), "serve %s: %w", name, cause)
}

// ownGateway reports whether a URL is that of our own gateway on this machine.
func ownGateway(url string) bool {
	url = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	for _, host := range []string{"127.0.0.1", "localhost", "host.docker.internal"} {
		if url == strings.Replace(serveLLM, "127.0.0.1", host, 1) {
			return true
		}
	}
	return false
}
