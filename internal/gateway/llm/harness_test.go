package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// The credentials of the tests: neither may be where the other belongs.
const (
	runToken = "insx_canary-of-the-run"
	hostKey  = "sk-ant-api03-canary-of-the-host"
	runA     = task.ID("run_a")
)

// world is a gateway with what it works with, all of it in memory.
type world struct {
	t       *testing.T
	gateway *Gateway
	server  *httptest.Server // the gateway over TCP

	mu      sync.Mutex
	route   Route
	spent   map[task.ID]task.Tokens
	models  []string
	lines   []Request
	notices []string
	logged  chan struct{} // one for each line
}

func newWorld(t *testing.T, route Route) *world {
	t.Helper()
	w := &world{t: t, route: route, spent: map[task.ID]task.Tokens{}, logged: make(chan struct{}, 1000)}
	w.gateway = New(Config{
		Check:   w.check,
		Route:   func(context.Context, task.ID) (Route, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.route, nil },
		Spent:   w.total,
		Account: w.account,
		Notify: func(run task.ID, level, text string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notices = append(w.notices, string(run)+" "+level+": "+text)
		},
		Log: func(r Request) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lines = append(w.lines, r)
			w.logged <- struct{}{}
		},
	})
	t.Cleanup(w.gateway.Close)
	w.server = httptest.NewServer(w.gateway)
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) check(_ context.Context, token secret.String) (task.ID, error) {
	switch token.Reveal() {
	case runToken:
		return runA, nil
	case "insx_trouble":
		return "", errors.New("the disk is full")
	}
	return "", errs.New("test", errs.Auth, "", "the access token is not valid")
}

func (w *world) total(_ context.Context, run task.ID) (task.Tokens, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spent[run], nil
}

func (w *world) account(_ context.Context, run task.ID, model string, used task.Tokens) (task.Tokens, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent[run] = w.spent[run].Add(used)
	w.models = append(w.models, model)
	return w.spent[run], nil
}

// line waits for the end of a request and returns what was logged of it.
func (w *world) line() Request {
	w.t.Helper()
	<-w.logged
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[len(w.lines)-1]
}

func (w *world) used() task.Tokens {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spent[runA]
}

func (w *world) notice() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.notices, "\n")
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a request with the run's token.
func (w *world) post(path, body string) answer {
	w.t.Helper()
	return w.send(http.MethodPost, path, body, http.Header{"Authorization": {"Bearer " + runToken}})
}

func (w *world) send(method, path, body string, h http.Header) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header = h
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(all)}
}

// provider is an upstream that answers with h and remembers what it was sent.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seenRequest
}

type seenRequest struct {
	path   string
	query  string
	header http.Header
	body   string
	length int64
}

func newProvider(t *testing.T, h http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway broke it off, so it is no request
		}
		p.mu.Lock()
		p.requests = append(p.requests, seenRequest{r.URL.Path, r.URL.RawQuery, r.Header.Clone(), string(body), r.ContentLength})
		p.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) seen() []seenRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]seenRequest(nil), p.requests...)
}

func (p *provider) upstream() Upstream { return Upstream{URL: p.URL, Key: secret.New(hostKey)} }

// both routes both dialects to p.
func (p *provider) both() Route { return Route{Anthropic: p.upstream(), OpenAI: p.upstream()} }

// says answers every request with the same.
func says(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

const (
	events = "text/event-stream"
	plain  = "application/json"
)

// wantRefusal checks an answer of the gateway itself, in the shape of the path's dialect.
func wantRefusal(t *testing.T, a answer, status int, words ...string) {
	t.Helper()
	var body struct {
		Type  string
		Error struct{ Type, Message, Code string }
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != status {
		t.Fatalf("status %d, want %d: %s (%v)", a.status, status, a.body, err)
	}
	if (body.Type == "error") == (body.Error.Code != "") || body.Error.Type == "" {
		t.Errorf("shape of no dialect: %s", a.body)
	}
	for _, word := range words {
		if !strings.Contains(body.Error.Message, word) {
			t.Errorf("%q does not say %q", body.Error.Message, word)
		}
	}
	if strings.Contains(body.Error.Message, "\n") {
		t.Errorf("more than one line: %q", body.Error.Message)
	}
}
