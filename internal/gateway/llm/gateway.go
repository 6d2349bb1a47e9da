package llm

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/gateway/onestream"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Bounds.
const (
	maxBody          = 64 << 20
	dialTime         = 10 * time.Second
	handshakeTime    = 10 * time.Second
	firstByteTime    = 10 * time.Minute // a long answer that is not a stream comes all at once
	idleUpstream     = 90 * time.Second
	accountTime      = 10 * time.Second
	idleConnsPerHost = 64
	copyBuffer       = 32 << 10
)

// Config is what a gateway works with. Its functions may be called at the same time.
type Config struct {
	// Check returns the run of a token that is valid and holds llm_gateway:read. An error
	// of kind Auth is told to the agent as a dead token, any other as our own trouble.
	Check func(ctx context.Context, token secret.String) (task.ID, error)
	// Route says where the requests of a run go and how much they may cost.
	Route func(ctx context.Context, run task.ID) (Route, error)
	// Spent returns what the run has used. It is asked before a request of a run with a
	// budget.
	Spent func(ctx context.Context, run task.ID) (task.Tokens, error)
	// Account adds what one request to a model used, and returns the run's sum. The end
	// of the answer waits for it.
	Account func(ctx context.Context, run task.ID, model string, used task.Tokens) (task.Tokens, error)
	// Notify tells the run's people something, at level info, warn or error; the same
	// text may come again. It may be nil.
	Notify func(run task.ID, level, text string)
	// Log takes one line for each request. It may be nil.
	Log func(Request)
	// Proxy is the proxy for requests to upstreams, as in [http.Transport]. It may be nil.
	Proxy func(*http.Request) (*url.URL, error)
}

// Route says where the requests of a run go.
type Route struct {
	Anthropic, OpenAI Upstream
	// Forward is the base URL of another gateway. If it is set everything goes there: with
	// the path as it is, and the run's own token.
	Forward string
	Budget  Budget
	Prices  Prices
}

// Upstream is the API of a provider. The zero value is none. Without a URL, it is the
// provider's own; without a Key, one that needs none.
type Upstream struct {
	URL string // base, without /v1
	Key secret.String
}

// Request is what is remembered of a request. It has no content.
type Request struct {
	Run       task.ID // empty if the token was not valid
	Method    string
	Path      string // at the provider; empty if the gateway does not serve it
	Model     string
	Status    int   // 499: the client left before there was one
	Sent      int64 // bytes of the request's body
	Received  int64 // bytes of the answer's
	FirstByte time.Duration
	Took      time.Duration
	Used      task.Tokens
	Estimated bool   // the answer did not say what it used
	Refused   string // why the gateway itself answered; a code
}

// Gateway passes the requests of agents on to the providers of models. It is an
// [http.Handler] for requests whose token names the run.
type Gateway struct {
	cfg       Config
	transport *http.Transport
	buffers   buffers
	queues    queues
}

var _ http.Handler = (*Gateway)(nil)

// New returns a gateway. Close it.
func New(cfg Config) *Gateway {
	if cfg.Notify == nil {
		cfg.Notify = func(task.ID, string, string) {}
	}
	if cfg.Log == nil {
		cfg.Log = func(Request) {}
	}
	dialer := &net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}
	return &Gateway{cfg: cfg, transport: &http.Transport{
		Proxy:                 cfg.Proxy,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   handshakeTime,
		ResponseHeaderTimeout: firstByteTime,
		IdleConnTimeout:       idleUpstream,
		MaxIdleConnsPerHost:   idleConnsPerHost,
		DisableCompression:    true, // the answer is read on its way
		WriteBufferSize:       copyBuffer,
		ReadBufferSize:        copyBuffer,
		// A stream whose upstream has died without a word ends.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}}
}

// Close drops the idle connections to upstreams.
func (g *Gateway) Close() { g.transport.CloseIdleConnections() }

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.handle(w, r, "") }

// Serve serves the connections of l until ctx is done; the token of a request names its
// run. It returns when nothing is being served any more.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	return onestream.ServeAll(ctx, l, g)
}

// ServeConn serves one stream of a run's link, which it closes. A token of another run is
// refused there.
func (g *Gateway) ServeConn(ctx context.Context, conn net.Conn, run task.ID) error {
	return onestream.Serve(ctx, conn, bound{g, run})
}

// bound is a gateway for one run.
type bound struct {
	g   *Gateway
	run task.ID
}

// ServeHTTP implements [http.Handler].
func (b bound) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.g.handle(w, r, b.run) }

// buffers are reused between the bodies of answers.
type buffers struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, copyBuffer)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
