package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Hub is the MCP servers of one run. Its methods may be called at the same time.
type Hub struct {
	cfg    Config
	relays []*relay      // in the order in which the agent sees them
	slots  chan struct{} // one for each request with a body
	bodies *semaphore.Weighted

	reports atomic.Int64 // of progress

	once  sync.Once
	quit  chan struct{} // closed by Close
	ready chan struct{} // closed when Connect is over

	mu     sync.Mutex // guards what follows
	routes map[string]*route
	calls  map[*call]struct{} // that Close ends
	closed bool
	kept   int64          // bytes of artifacts
	files  int            // artifacts
	work   sync.WaitGroup // nothing is added once closed is set
}

// call is one call that is being made.
type call struct{ cancel context.CancelFunc }

// route is one server as it is served.
type route struct {
	server  *sdk.Server
	handler http.Handler
}

// New checks the configuration and returns a hub that is not connected. Errors are of
// kind Config.
func New(cfg Config) (*Hub, error) {
	approve, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.Do == nil || cfg.CheckToken == nil {
		return nil, errs.New("mcp.New", errs.Internal, "", "an MCP hub needs a run and a check of tokens")
	}
	h := &Hub{
		cfg: cfg, slots: make(chan struct{}, maxRequests), bodies: semaphore.NewWeighted(maxBodies), quit: make(chan struct{}),
		ready: make(chan struct{}), routes: map[string]*route{}, calls: map[*call]struct{}{},
	}
	if s := cfg.Insights; cfg.hasInsights() {
		h.addRelay(Insights, httpDialer(s.URL, s.headersOf()), s.ReadOnly, approve)
	}
	for _, s := range cfg.Servers {
		dial, err := cfg.dialer(s)
		if err != nil {
			return nil, err
		}
		h.addRelay(s.Name, dial, false, approve)
	}
	return h, nil
}

func (h *Hub) addRelay(name string, dial dialer, readOnly bool, approve *regexp.Regexp) {
	h.relays = append(h.relays, &relay{hub: h, up: newUpstream(name, dial), guard: newGuard(name, readOnly, h.cfg, approve)})
}

// dialer says how a user's server is reached.
func (c Config) dialer(s task.MCPServer) (dialer, error) {
	expand := func(values map[string]string) (map[string]secret.String, error) {
		out := make(map[string]secret.String, len(values))
		for k, v := range values {
			out[k] = secret.New(v)
			if c.Expand == nil {
				continue
			}
			var err error
			if out[k], err = c.Expand(v); err != nil {
				return nil, errs.New("mcp.New", errs.Config, "", "MCP server %q: %s: %w", s.Name, k, err)
			}
		}
		return out, nil
	}
	headers, err := expand(s.Headers)
	if err != nil {
		return nil, err
	}
	env, err := expand(s.Env)
	if err != nil {
		return nil, err
	}
	if s.URL != "" {
		return httpDialer(s.URL, headers), nil
	}
	return processDialer(s.Command, c.Environ, env), nil
}

// Connect connects to every server at the same time and returns what the agent gets. A
// required server that cannot be had is an error, and the hub is closed then; another
// one is told to people, and left out. Requests wait until Connect is over. Call it
// once.
func (h *Hub) Connect(ctx context.Context) ([]wire.MCPServer, error) {
	defer close(h.ready)
	servers, failures := make([]*sdk.Server, len(h.relays)), make([]error, len(h.relays))
	var all sync.WaitGroup
	for i, r := range h.relays {
		all.Go(func() { servers[i], failures[i] = r.connect(ctx) })
	}
	all.Wait()
	for i, r := range h.relays {
		if failures[i] != nil && (h.required(r.up.name) || ctx.Err() != nil) {
			h.Close()
			return nil, h.missing(r.up.name, failures[i])
		}
	}
	list := []wire.MCPServer{h.serve(Own, h.newOwn())}
	for i, r := range h.relays {
		if failures[i] != nil {
			h.notice("warn", h.absence(r.up.name, failures[i]))
			continue
		}
		at := len(list)
		if r.up.name == Insights {
			at = 0 // the product's own server is the first
		}
		list = slices.Insert(list, at, h.serve(r.up.name, servers[i]))
	}
	return list, nil
}

func (h *Hub) required(name string) bool { return slices.Contains(h.cfg.Require, name) }

func (h *Hub) notice(level, text string) {
	if h.cfg.Notice != nil {
		h.cfg.Notice(level, text)
	}
}

// serve makes a server reachable.
func (h *Hub) serve(name string, s *sdk.Server) wire.MCPServer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return wire.MCPServer{} // nobody will ask
	}
	h.routes[name] = &route{server: s, handler: sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{
			MaxRequestBodyBytes: maxBody,
			// Every request carries the run's token, and the loopback of a sandbox is
			// not the user's: the guard would refuse the host names that agents use.
			DisableLocalhostProtection: true,
		})}
	return wire.MCPServer{
		Name: name, Required: h.required(name),
		URL: "http://127.0.0.1:" + strconv.Itoa(wire.PortMCP) + "/" + name,
	}
}

// missing is the error of a required server.
func (h *Hub) missing(name string, err error) error {
	if errors.Is(err, context.Canceled) {
		return errs.New("mcp.Connect", errs.Canceled, "", "connect to the MCP server %q: %w", name, err)
	}
	hint := "see that it can be started and reached from this machine, or require it no more"
	if name == Insights {
		hint = "start it (in services/mcp of the Insights repository) or set SANDBOX_MCP_URL, or run without --require-mcp " + Insights
	}
	return errs.New("mcp.Connect", errs.Unavailable, hint, "the required MCP server %q is not connected: %w", name, err)
}

// absence is the line about an optional server.
func (h *Hub) absence(name string, err error) string {
	if name != Insights {
		return fmt.Sprintf("the MCP server %q is not connected, its tools are unavailable: %v", name, err)
	}
	s := fmt.Sprintf("the Insights MCP server does not answer at %s; its tools are unavailable", h.cfg.Insights.URL)
	if h.cfg.Insights.Default {
		return s
	}
	return fmt.Sprintf("%s: %v", s, err)
}

// bound bounds one call: by the end of the hub, and by time unless within is 0.
func (h *Hub) bound(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	stop := func() {}
	if within > 0 {
		ctx, stop = context.WithTimeout(ctx, within)
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &call{cancel: cancel}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		cancel()
	}
	h.calls[c] = struct{}{}
	return ctx, func() {
		h.mu.Lock()
		delete(h.calls, c)
		h.mu.Unlock()
		cancel()
		stop()
	}
}

// evict makes room for a new session: agents that are started again leave theirs.
func (h *Hub) evict(rt *route) {
	open := slices.Collect(rt.server.Sessions())
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(open) >= maxSessions && !h.closed {
		h.work.Go(func() { _ = open[0].Close() }) // which waits for its calls
	}
}

// Close ends every session, with the agent and with the servers, and the processes that
// were started. It may be called more than once, and returns when all is over.
func (h *Hub) Close() {
	h.once.Do(func() {
		close(h.quit)
		h.mu.Lock()
		h.closed = true
		routes := h.routes
		h.routes = nil
		for c := range h.calls {
			c.cancel()
		}
		h.mu.Unlock()
		var all sync.WaitGroup
		for _, rt := range routes {
			for s := range rt.server.Sessions() {
				all.Go(func() { _ = s.Close() })
			}
		}
		for _, r := range h.relays {
			all.Go(r.up.close)
		}
		all.Wait()
		h.work.Wait()
	})
}
