package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// maxEdited is the longest request of Chat Completions that is sent with its length
// known; a longer one is sent in chunks, which some endpoints do not read.
const maxEdited = 4 << 20

// forwardHeader marks what goes to another gateway. Where it comes back to a run that is
// forwarded, it would go round for ever.
const forwardHeader = "X-Insightscli-Forward"

// exchange is one request and its answer.
type exchange struct {
	g        *Gateway
	endpoint endpoint
	token    string
	route    Route
	line     Request
	started  time.Time

	upload *upload
	meter  *meter
	once   sync.Once // for the account
	leave  func()    // gives back what admit took; may be nil
}

// handle serves one request; run is empty where the token names it.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request, run task.ID) {
	x := &exchange{g: g, started: time.Now(), line: Request{Method: r.Method}}
	defer x.end()
	if f := x.admit(r, run); f != nil {
		x.refuse(w, f)
		return
	}
	if x.endpoint.local {
		x.line.Status = http.StatusOK
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message":"hello"}`) // a client that has gone needs no answer
		return
	}
	x.forward(w, r)
}

// end writes the line of the request.
func (x *exchange) end() {
	if x.leave != nil {
		x.leave()
	}
	x.line.Took = time.Since(x.started)
	if x.upload != nil {
		s := x.upload.sent()
		x.line.Sent = s.bytes
		if x.line.Model == "" {
			x.line.Model = s.model
		}
	}
	x.g.cfg.Log(x.line)
}

func (x *exchange) refuse(w http.ResponseWriter, f *refusal) {
	x.line.Status, x.line.Refused = f.status, f.code
	f.write(w)
}

// admit decides whether the request may go out, and where to.
func (x *exchange) admit(r *http.Request, run task.ID) (f *refusal) {
	if x.endpoint, f = resolve(r); f != nil {
		return f
	}
	x.line.Path = x.endpoint.path
	if x.endpoint.local {
		return nil // it says that somebody is there, and that is no secret
	}
	if f := x.identify(r, run); f != nil {
		return f
	}
	var err error
	if x.route, err = x.g.cfg.Route(r.Context(), x.line.Run); err != nil {
		return x.trouble("find where requests to models go", err)
	}
	if x.route.Forward != "" && r.Header.Get(forwardHeader) != "" {
		return &refusal{
			status: http.StatusLoopDetected, dialect: x.endpoint.dialect, code: "loop",
			text: "SANDBOX_LLM_GATEWAY_URL leads back to insightscli itself: leave it out",
		}
	}
	if x.route.Forward == "" && x.upstream() == (Upstream{}) {
		return x.forbid("no_upstream", "this run has no access to such models: set %s on the host, or %s",
			x.endpoint.dialect.key(), x.endpoint.dialect.urlVariable())
	}
	if f := x.checkBody(r); f != nil || !x.endpoint.answers || !x.route.Budget.limited() {
		return f
	}
	return x.afford(r.Context())
}

// afford looks whether the run's budget allows another request. What those that are
// going on will use is not known, so only a few go on at once and the others wait here.
func (x *exchange) afford(ctx context.Context) *refusal {
	var err error
	if x.leave, err = x.g.queues.enter(ctx, x.line.Run); err != nil {
		return x.trouble("wait for the run's other requests", err)
	}
	spent, err := x.g.cfg.Spent(ctx, x.line.Run)
	if err != nil {
		return x.trouble("read what the run has used", err)
	}
	if why := x.route.Budget.Exceeded(spent); why != "" {
		return x.forbid("budget_exceeded", "%s", why)
	}
	return nil
}

// identify finds the run of the token.
func (x *exchange) identify(r *http.Request, run task.ID) *refusal {
	x.token = tokenOf(r.Header)
	if x.token == "" {
		return x.forbid("no_token", "the request has no access token: it goes into Authorization or X-Api-Key")
	}
	who, err := x.g.cfg.Check(r.Context(), secret.New(x.token))
	switch {
	case errs.KindOf(err) == errs.Auth:
		return x.forbid("token_not_valid", "%s (a token ends with its run)", err.Error())
	case err != nil:
		return x.trouble("check the access token", err)
	case run != "" && who != run:
		return x.forbid("token_not_valid", "the access token is that of another run")
	}
	x.line.Run = who
	return nil
}

func tokenOf(h http.Header) string {
	if kind, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(kind, "Bearer") {
		if token = strings.TrimSpace(token); token != "" {
			return token
		}
	}
	return strings.TrimSpace(h.Get("X-Api-Key"))
}

// checkBody refuses a body that could not be passed on.
func (x *exchange) checkBody(r *http.Request) *refusal {
	if r.ContentLength > maxBody {
		return x.tooLarge()
	}
	if r.Method == http.MethodPost && r.ContentLength == 0 {
		return &refusal{status: http.StatusBadRequest, dialect: x.endpoint.dialect, code: "no_body", text: "the request is empty"}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return &refusal{
			status: http.StatusUnsupportedMediaType, dialect: x.endpoint.dialect, code: "compressed",
			text: "send the request without Content-Encoding: the LLM gateway of insightscli reads the model's name in it",
		}
	}
	return nil
}

func (x *exchange) tooLarge() *refusal {
	return &refusal{
		status: http.StatusRequestEntityTooLarge, dialect: x.endpoint.dialect, code: "too_large",
		text: fmt.Sprintf("the request has more than %d MiB", maxBody>>20),
	}
}

// forbid is a refusal that stands: both Claude Code and Codex give up on it.
func (x *exchange) forbid(code, format string, args ...any) *refusal {
	return &refusal{status: http.StatusForbidden, dialect: x.endpoint.dialect, code: code, text: fmt.Sprintf(format, args...)}
}

func (x *exchange) trouble(doing string, err error) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, dialect: x.endpoint.dialect, code: "gateway_trouble", again: 1,
		text: "the LLM gateway of insightscli could not " + doing + ": " + err.Error(),
	}
}

func (x *exchange) upstream() Upstream {
	if x.endpoint.dialect == anthropic {
		return x.route.Anthropic
	}
	return x.route.OpenAI
}

// forward passes the request on and the answer back.
func (x *exchange) forward(w http.ResponseWriter, r *http.Request) {
	base, err := x.base()
	if err != nil {
		x.refuse(w, x.trouble("read the address of the model's provider", err))
		return
	}
	if r, err = x.watch(w, r); err != nil {
		x.broken(w, r, err)
		return
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { x.rewrite(p, base) },
		Transport:      x.g.transport,
		FlushInterval:  -1,
		BufferPool:     &x.g.buffers,
		ErrorLog:       silent(),
		ModifyResponse: x.answered,
		ErrorHandler:   x.broken,
	}
	proxy.ServeHTTP(w, r)
}

// base is the URL that the path of the request is put after.
func (x *exchange) base() (*url.URL, error) {
	address := x.route.Forward
	if address == "" {
		if address = x.upstream().URL; address == "" {
			address = x.endpoint.dialect.official()
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.Unwrap(err) // the address may hold a password
	}
	if u.Hostname() == "host.docker.internal" { // this host, as containers call it
		u.Host = strings.Replace(u.Host, "host.docker.internal", "127.0.0.1", 1)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	if x.route.Forward == "" {
		u.Path = strings.TrimSuffix(u.Path, "/v1")
	}
	return u, nil
}

// watch puts an upload in the place of the request's body.
func (x *exchange) watch(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	for _, name := range []string{"Expect", "Upgrade", "Connection"} {
		out.Header.Del(name) // of this connection, not the next
	}
	if r.Method != http.MethodPost {
		out.Body, out.ContentLength = http.NoBody, 0
		return out, nil
	}
	var price func(string) bool
	if x.endpoint.answers && x.route.Budget.MaxCost > 0 {
		price = func(model string) bool {
			_, ok := x.route.Prices.Of(model)
			return ok
		}
	}
	x.upload = newUpload(http.MaxBytesReader(w, r.Body, maxBody), x.endpoint, price)
	out.Body = readCloser{x.upload, r.Body}
	if x.endpoint.path != pathChat {
		return out, x.upload.peek()
	}
	if r.ContentLength < 0 || r.ContentLength > maxEdited {
		out.ContentLength = -1
		return out, nil
	}
	// Made as large as it becomes: many clients may be sending at once.
	body := bytes.NewBuffer(make([]byte, 0, int(r.ContentLength)+len(includeUsage)+bytes.MinRead))
	_, err := body.ReadFrom(x.upload)
	out.Body, out.ContentLength = io.NopCloser(body), int64(body.Len())
	return out, err
}

// rewrite makes the outgoing request: everything that names the agent, or says who
// asked, goes; the host's key comes.
func (x *exchange) rewrite(p *httputil.ProxyRequest, base *url.URL) {
	out, forwarded := p.Out, x.route.Forward != ""
	if !forwarded {
		out.URL.Path = x.endpoint.path
	}
	out.URL.RawPath = ""
	p.SetURL(base)
	h := out.Header
	for name, values := range h {
		if private(name) || strings.Contains(strings.Join(values, "\n"), x.token) {
			delete(h, name)
		}
	}
	if strings.Contains(out.URL.RawQuery, x.token) {
		out.URL.RawQuery = ""
	}
	h.Set("Accept-Encoding", "identity")
	key := x.upstream().Key.Reveal()
	switch {
	case forwarded:
		h.Set("Authorization", "Bearer "+x.token)
		h.Set(forwardHeader, "1")
	case key == "":
	case x.endpoint.dialect == openai:
		h.Set("Authorization", "Bearer "+key)
	default:
		h.Set("X-Api-Key", key)
		if x.upstream().URL != "" { // compatible endpoints read either
			h.Set("Authorization", "Bearer "+key)
		}
	}
}

// private reports whether a header is a credential, or says where a request came from, or
// on whose account it goes.
func private(name string) bool {
	switch name {
	case "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Proxy-Authorization", "Cookie",
		"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Origin", "Referer",
		"Openai-Organization", "Openai-Project":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// broken answers where there is no answer of the upstream, or none to pass on.
func (x *exchange) broken(w http.ResponseWriter, r *http.Request, err error) {
	var f *refusal
	var large *http.MaxBytesError
	var s sent
	if x.upload != nil {
		s = x.upload.sent()
	}
	switch {
	case s.refused != nil:
		f = s.refused
	case errors.As(err, &f):
	case errors.As(err, &large):
		f = x.tooLarge()
	case r.Context().Err() != nil:
		x.line.Status = statusClientGone
		if s.complete { // the model may have been at work
			x.account(r.Context())
		}
		return
	default:
		f = &refusal{
			status: http.StatusBadGateway, dialect: x.endpoint.dialect, code: "unreachable", again: 1,
			text: "the model's provider cannot be reached: " + x.withoutKey(err.Error()),
		}
	}
	x.refuse(w, f)
}

type readCloser struct {
	io.Reader
	io.Closer
}
