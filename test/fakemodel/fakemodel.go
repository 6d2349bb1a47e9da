package fakemodel

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// maxBody bounds a request.
const maxBody = 64 << 20

// Options say how strict a [Model] is.
type Options struct {
	// RequireKey is the only key that is let in; "" lets everyone in.
	RequireKey string
	// AnthropicKey and OpenAIKey take its place for one vendor's APIs.
	AnthropicKey, OpenAIKey string
	// Log gets a line of JSON per request, if it is not nil.
	Log io.Writer
}

// Request is what the log knows of one request.
type Request struct {
	N       int      `json:"n"` // from 1
	Method  string   `json:"method"`
	Path    string   `json:"path"`
	Dialect string   `json:"dialect,omitempty"` // anthropic, responses, chat
	Model   string   `json:"model,omitempty"`
	Stream  bool     `json:"stream,omitempty"`
	Auth    string   `json:"auth"`           // bearer, x-api-key, none
	Step    int      `json:"step"`           // of the script; -1 without one
	Kind    string   `json:"kind,omitempty"` // of the step
	Status  int      `json:"status"`
	Tools   []string `json:"tools,omitempty"`

	Key    string      `json:"-"`
	Header http.Header `json:"-"`
	Body   []byte      `json:"-"`
}

// Model is the fake. It is an [http.Handler]; paths may have any prefix. Its methods
// may be called from several goroutines.
type Model struct {
	o Options

	mu       sync.Mutex
	log      []Request
	happened map[string]int
	gates    map[string]*gate
	changed  chan struct{} // closed and replaced whenever something happens
}

// gate is a place where streams wait.
type gate struct {
	waiting  int
	released chan struct{}
}

var _ http.Handler = (*Model)(nil)

// New returns a Model.
func New(o Options) *Model {
	return &Model{o: o, happened: map[string]int{}, gates: map[string]*gate{}, changed: make(chan struct{})}
}

// Requests returns the requests so far, in the order of their arrival.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// Release lets all streams that wait or will wait at "hold":name go on.
func (m *Model) Release(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gate(name)
	select {
	case <-g.released:
	default:
		close(g.released)
	}
}

// Held waits until a stream waits at "hold":name.
func (m *Model) Held(ctx context.Context, name string) error {
	return m.await(ctx, func() bool { return m.gate(name).waiting > 0 })
}

// Await waits until ok of the log.
func (m *Model) Await(ctx context.Context, ok func([]Request) bool) error {
	return m.await(ctx, func() bool { return ok(m.log) })
}

// await waits until ok, which is called under the lock.
func (m *Model) await(ctx context.Context, ok func() bool) error {
	for {
		m.mu.Lock()
		yes, changed := ok(), m.changed
		m.mu.Unlock()
		if yes {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gate and touch are called under the lock.
func (m *Model) gate(name string) *gate {
	g := m.gates[name]
	if g == nil {
		g = &gate{released: make(chan struct{})}
		m.gates[name] = g
	}
	return g
}

func (m *Model) touch() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// held waits at the gate; false when the client left.
func (m *Model) held(ctx context.Context, name string) bool {
	if name == "" {
		return ctx.Err() == nil
	}
	m.mu.Lock()
	g := m.gate(name)
	g.waiting++
	m.touch()
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		g.waiting--
		m.touch()
	}()
	select {
	case <-g.released:
		return true
	case <-ctx.Done():
		return false
	}
}

// ServeHTTP implements [http.Handler].
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Step: -1, Header: r.Header.Clone(), Body: body, Status: http.StatusOK}
	req.Auth, req.Key = credentials(r.Header)
	d := dialectOf(r.URL.Path)
	if d != nil {
		req.Dialect = d.name
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/api/hello"):
		m.plain(w, &req, http.StatusOK, object{"message": "hello"})
	case !m.admits(&req):
		m.plain(w, &req, http.StatusUnauthorized, fault(d, http.StatusUnauthorized, "invalid x-api-key"))
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/v1/models"):
		m.plain(w, &req, http.StatusOK, models())
	case d == nil:
		m.plain(w, &req, http.StatusNotFound, fault(d, http.StatusNotFound, "no such path: "+r.URL.Path))
	case r.Method != http.MethodPost:
		m.plain(w, &req, http.StatusMethodNotAllowed, fault(d, http.StatusMethodNotAllowed, "only POST"))
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		m.plain(w, &req, http.StatusOK, countTokens(body))
	default:
		m.converse(w, r, d, &req)
	}
}

// converse answers a request for a reply.
func (m *Model) converse(w http.ResponseWriter, r *http.Request, d *dialect, req *Request) {
	c, err := d.read(req.Body)
	if err != nil {
		m.plain(w, req, http.StatusBadRequest, d.fault(http.StatusBadRequest, err.Error()))
		return
	}
	req.Model, req.Stream, req.Tools = c.model, c.stream, c.tools
	t := m.turn(c)
	req.Step, req.Kind = t.index, t.answer.kind()
	if t.failure != nil {
		req.Kind = t.failure.kind()
	}
	if f := t.failure; f != nil && f.Status > 0 {
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		words := first(f.Message, fmt.Sprintf("scripted %d", f.Status))
		m.plain(w, req, f.Status, d.fault(f.Status, words))
		return
	}
	m.record(req)
	answer := c.answer(&t.answer)
	switch {
	case t.failure != nil && t.failure.Hang:
		<-r.Context().Done()
	case c.stream:
		m.play(r.Context(), w, d, d.stream(c, answer), &t)
	case t.failure != nil:
		panic(http.ErrAbortHandler) // a cut reply that is not a stream
	case m.held(r.Context(), t.answer.Hold):
		writeJSON(w, http.StatusOK, d.whole(c, answer))
	}
}

// turn finds what to do in c.
func (m *Model) turn(c *conversation) turn {
	words := func(text string) turn { return turn{index: -1, answer: Step{Text: &text}} }
	script, done, ok := c.position()
	if !ok {
		return words("ok (no script)")
	}
	steps, err := parseScript(script)
	if err != nil {
		return words(err.Error())
	}
	sum := sha256.Sum256([]byte(script))
	return choose(steps, done, func(index int, s *Step) bool {
		if s.Times == 0 {
			return true
		}
		key := fmt.Sprintf("%x %d", sum, index)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.happened[key]++
		return m.happened[key] <= s.Times
	})
}

func (m *Model) plain(w http.ResponseWriter, req *Request, status int, body any) {
	req.Status = status
	m.record(req)
	writeJSON(w, status, body)
}

func (m *Model) record(req *Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	req.N = len(m.log) + 1
	m.log = append(m.log, *req)
	if m.o.Log != nil {
		_, _ = m.o.Log.Write(append(encode(req), '\n')) // the log is a convenience of the one who reads it
	}
	m.touch()
}

func (m *Model) admits(req *Request) bool {
	want := m.o.RequireKey
	switch req.Dialect {
	case "anthropic":
		want = first(m.o.AnthropicKey, want)
	case "responses", "chat":
		want = first(m.o.OpenAIKey, want)
	}
	return want == "" || req.Key == want || req.Dialect == "" && slices.Contains([]string{m.o.AnthropicKey, m.o.OpenAIKey}, req.Key)
}

func credentials(h http.Header) (kind, key string) {
	if key := h.Get("X-Api-Key"); key != "" {
		return "x-api-key", key
	}
	if key, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
		return "bearer", key
	}
	return "none", ""
}

func dialectOf(path string) *dialect {
	switch {
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/messages/count_tokens"):
		return anthropic
	case strings.HasSuffix(path, "/responses"):
		return responses
	case strings.HasSuffix(path, "/chat/completions"):
		return chat
	}
	return nil
}

func fault(d *dialect, status int, words string) any {
	if d == nil {
		d = chat
	}
	return d.fault(status, words)
}

// models answers in a shape that the clients of both vendors read.
func models() any {
	list := []object{}
	for _, id := range []string{"claude-opus-5-5", "gpt-5.5"} {
		list = append(list, object{
			"id": id, "object": "model", "type": "model", "display_name": id, "owned_by": "script",
			"created": 1767225600, "created_at": "2026-01-01T00:00:00Z",
		})
	}
	return object{"object": "list", "data": list, "has_more": false, "first_id": "claude-opus-5-5", "last_id": "gpt-5.5"}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone has nobody to tell
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
