package llm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

const (
	messageJSON = `{"id":"m","type":"message","model":"claude-opus-5-5","content":[{"type":"text","text":"hi"}],
		"usage":{"input_tokens":30,"output_tokens":15,"cache_read_input_tokens":100,"cache_creation_input_tokens":7}}`
	askClaude = `{"model":"claude-opus-5-5","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

func TestPathsThatAreServed(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, p.both())
	tests := []struct{ method, path, at string }{
		{"POST", "/anthropic/v1/messages?beta=true", "/v1/messages"},
		{"POST", "/anthropic/v1/messages/count_tokens", "/v1/messages/count_tokens"},
		{"GET", "/anthropic/v1/models", "/v1/models"},
		{"POST", "/openai/v1/responses", "/v1/responses"},
		{"POST", "/openai/v1/chat/completions", "/v1/chat/completions"},
		{"GET", "/openai/v1/models", "/v1/models"},
		{"POST", "/v1/messages", "/v1/messages"},
		{"POST", "/v1/responses", "/v1/responses"},
		{"POST", "/v1/chat/completions", "/v1/chat/completions"},
		{"GET", "/v1/models", "/v1/models"},
		{"POST", "/posthog_code/v1/messages", "/v1/messages"},
		{"POST", "/posthog_code/v1/responses", "/v1/responses"},
		{"GET", "/posthog_code/v1/models", "/v1/models"},
	}
	for _, tt := range tests {
		a := w.send(tt.method, tt.path, askClaude, http.Header{"X-Api-Key": {runToken}, "Anthropic-Beta": {"b1"}})
		seen := p.seen()
		last := seen[len(seen)-1]
		if a.status != 200 || a.body != messageJSON || last.path != tt.at || last.header.Get("Anthropic-Beta") != "b1" {
			t.Errorf("%s %s: %d at %s, headers %v", tt.method, tt.path, a.status, last.path, last.header)
		}
		if _, query, _ := strings.Cut(tt.path, "?"); last.query != query {
			t.Errorf("%s: query %q", tt.path, last.query)
		}
	}
}

func TestOtherPathsGoNowhere(t *testing.T) {
	p := newProvider(t, says(plain, `{}`))
	w := newWorld(t, p.both())
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/embeddings", "/v1/messages/", "/v1/messages/batches", "/anthropic/v1/responses", "/openai/v1/messages",
		"/a/b/v1/messages", "/Anthropic/v1/messages", "/anthropic/v1/../v1/messages", "/anthropic//v1/messages", "/anthropic/v1%2fmessages",
		"/openai/v1/responses/resp_1", "/%2e%2e/v1/messages", "/..//v1/messages", "/openai/v1/files",
	} {
		wantRefusal(t, w.post(path, askClaude), 404)
	}
	a := w.send("GET", "/anthropic/v1/messages", "", http.Header{"X-Api-Key": {runToken}})
	if wantRefusal(t, a, 405); a.header.Get("Allow") != "POST" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
	if n := len(p.seen()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}

func TestHelloNeedsNothing(t *testing.T) {
	w := newWorld(t, Route{})
	for _, path := range []string{"/anthropic/api/hello", "/api/hello", "/posthog_code/api/hello"} {
		for _, method := range []string{"HEAD", "GET"} {
			if a := w.send(method, path, "", nil); a.status != 200 {
				t.Errorf("%s %s: %d", method, path, a.status)
			}
		}
	}
}

// Codex tries a WebSocket first with its built-in provider.
func TestWebSocketIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t, Route{})
	a := w.send("GET", "/openai/v1/responses", "", http.Header{
		"Authorization": {"Bearer " + runToken}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}, "Sec-Websocket-Version": {"13"},
	})
	wantRefusal(t, a, 426, "HTTP")
}

func TestKeysStayOnTheirSide(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("X-Echo", hostKey)
		w.Header().Set("Request-Id", "req_1")
		w.Header().Set("Content-Type", plain)
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"error":{"message":"your key `+hostKey+` asked too much"}}`)
	})
	w := newWorld(t, p.both())
	for _, path := range []string{"/anthropic/v1/messages?token=" + runToken, "/openai/v1/responses"} {
		a := w.send("POST", path, askClaude, http.Header{
			"Authorization": {"Bearer " + runToken}, "X-Api-Key": {runToken}, "Cookie": {"a=b"}, "Api-Key": {"x"},
			"X-Forwarded-For": {"1.2.3.4"}, "Forwarded": {"for=1.2.3.4"}, "X-Other": {"is " + runToken}, "Anthropic-Version": {"2023-06-01"},
			"Openai-Organization": {"org"},
		})
		if a.status != 400 || a.header.Get("Request-Id") != "req_1" {
			t.Errorf("status %d, headers %v", a.status, a.header)
		}
		if got := fmt.Sprint(a); strings.Contains(got, hostKey) || a.header.Get("Set-Cookie") != "" {
			t.Errorf("the agent sees the key or a cookie: %s", got)
		}
		seen := p.seen()
		last := seen[len(seen)-1]
		if got := fmt.Sprint(last); strings.Contains(got, runToken) {
			t.Errorf("the provider sees the token: %s", got)
		}
		for _, name := range []string{"Cookie", "Api-Key", "X-Forwarded-For", "Forwarded", "X-Other", "Openai-Organization", "X-Forwarded-Host"} {
			if v, ok := last.header[name]; ok {
				t.Errorf("%s: %q", name, v)
			}
		}
		if last.header.Get("Authorization") != "Bearer "+hostKey || last.header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("headers %v", last.header)
		}
	}
	if got := p.seen()[0].header.Get("X-Api-Key"); got != hostKey {
		t.Errorf("Anthropic's key: %q", got)
	}
	if got := p.seen()[1].header.Get("X-Api-Key"); got != "" {
		t.Errorf("OpenAI's key in X-Api-Key: %q", got)
	}
	for _, line := range w.lines {
		if s := fmt.Sprintf("%+v", line); strings.Contains(s, runToken) || strings.Contains(s, hostKey) || strings.Contains(s, "hello") {
			t.Errorf("logged: %s", s)
		}
	}
}

func TestTokensThatAreNotValid(t *testing.T) {
	p := newProvider(t, says(plain, `{}`))
	w := newWorld(t, p.both())
	for _, path := range []string{"/anthropic/v1/messages", "/openai/v1/responses"} {
		wantRefusal(t, w.send("POST", path, askClaude, nil), 403, "no access token")
		a := w.send("POST", path, askClaude, http.Header{"Authorization": {"Bearer insx_dead"}})
		if wantRefusal(t, a, 403, "not valid"); a.header.Get("X-Should-Retry") != "false" {
			t.Error("the client is not told to give up")
		}
		a = w.send("POST", path, askClaude, http.Header{"X-Api-Key": {"insx_trouble"}})
		if wantRefusal(t, a, 503, "the disk is full"); a.header.Get("Retry-After") == "" {
			t.Error("the client is not told to try again")
		}
	}
	if n := len(p.seen()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}

// dial serves one stream of a link that belongs to run.
func dial(t *testing.T, g *Gateway, run task.ID) (conn net.Conn, served chan error) {
	t.Helper()
	here, there := net.Pipe()
	served = make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- g.ServeConn(ctx, there, run) }()
	t.Cleanup(func() { cancel(); _ = here.Close() })
	return here, served
}

func ask(t *testing.T, conn net.Conn, r *bufio.Reader) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://gateway/anthropic/v1/messages", strings.NewReader(askClaude))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+runToken)
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(r, req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(all)
}

func TestStreamOfALinkIsKeptForMoreRequests(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, p.both())
	conn, served := dial(t, w.gateway, runA)
	r := bufio.NewReader(conn)
	for range 3 {
		if status, body := ask(t, conn, r); status != 200 || body != messageJSON {
			t.Fatalf("%d %s", status, body)
		}
	}
	_ = conn.Close()
	if err := <-served; err != nil {
		t.Errorf("ServeConn: %v", err)
	}
	if n := w.used().Requests; n != 3 {
		t.Errorf("%d requests were accounted", n)
	}
}

func TestStreamOfALinkTakesItsOwnRunOnly(t *testing.T) {
	w := newWorld(t, Route{})
	conn, _ := dial(t, w.gateway, "run_b")
	if status, body := ask(t, conn, bufio.NewReader(conn)); status != 403 || !strings.Contains(body, "another run") {
		t.Errorf("%d %s", status, body)
	}
}

func TestServingEndsWithItsContext(t *testing.T) {
	started := make(chan struct{})
	p := newProvider(t, func(_ http.ResponseWriter, r *http.Request) { close(started); <-r.Context().Done() })
	w := newWorld(t, p.both())
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.gateway.Serve(ctx, l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", runToken, len(askClaude), askClaude)
	<-started
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := w.line(); got.Status != statusClientGone || !got.Estimated {
		t.Errorf("logged: %+v", got)
	}
}

// The first event is with the client before the provider has written the second.
func TestEventsPassAsTheyCome(t *testing.T) {
	next := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"%d\"}}\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	w := newWorld(t, p.both())
	req, _ := http.NewRequestWithContext(t.Context(), "POST", w.server.URL+"/anthropic/v1/messages", strings.NewReader(askClaude))
	req.Header.Set("X-Api-Key", runToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		if !lines.Scan() || !strings.Contains(lines.Text(), fmt.Sprintf(`"%d"`, i)) {
			t.Fatalf("event %d: %q", i, lines.Text())
		}
		lines.Scan() // the blank line
		next <- struct{}{}
	}
}

func TestProviderThatDoesNotTakeTheKey(t *testing.T) {
	for status, words := range map[int]string{401: "does not accept", 403: "does not allow"} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"x","message":"invalid\nx-api-key `+hostKey+`"}}`)
		})
		w := newWorld(t, p.both())
		wantRefusal(t, w.post("/anthropic/v1/messages", askClaude), 403, words, "ANTHROPIC_API_KEY", "invalid API key")
		wantRefusal(t, w.post("/openai/v1/responses", askClaude), 403, words, "OPENAI_API_KEY")
		if n := w.notice(); !strings.Contains(n, "run_a error: ") || !strings.Contains(n, "OPENAI_API_KEY") || strings.Contains(n, hostKey) {
			t.Errorf("notices: %s", n)
		}
		if w.used() != (task.Tokens{}) {
			t.Errorf("accounted: %+v", w.used())
		}
	}
}

func TestRunWithoutAProvider(t *testing.T) {
	w := newWorld(t, Route{})
	wantRefusal(t, w.post("/anthropic/v1/messages", askClaude), 403, "ANTHROPIC_API_KEY")
	wantRefusal(t, w.post("/openai/v1/chat/completions", askClaude), 403, "OPENAI_API_KEY")
}

func TestProviderThatIsNotThere(t *testing.T) {
	p := newProvider(t, nil)
	p.Close()
	w := newWorld(t, p.both())
	wantRefusal(t, w.post("/anthropic/v1/messages", askClaude), 502, "cannot be reached")
	wantRefusal(t, w.post("/openai/v1/responses", askClaude), 502, "cannot be reached")
}

func TestRedirectionIsNotPassedOn(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example", http.StatusFound)
	})
	w := newWorld(t, p.both())
	wantRefusal(t, w.post("/openai/v1/responses", askClaude), 502, "INSIGHTS_LLM_OPENAI_URL")
}

func TestOverloadPassesWithItsAdvice(t *testing.T) {
	for _, status := range []int{429, 500, 529} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"type":"error"}`)
		})
		w := newWorld(t, p.both())
		a := w.post("/anthropic/v1/messages", askClaude)
		if a.status != status || a.header.Get("Retry-After") != "7" || a.body != `{"type":"error"}` {
			t.Errorf("%+v", a)
		}
		if w.used().Requests != 0 {
			t.Errorf("accounted: %+v", w.used())
		}
	}
}

func TestForwardingKeepsPathAndToken(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, Route{Forward: p.URL + "/base/", Anthropic: Upstream{Key: secret.New(hostKey)}})
	w.post("/anthropic/v1/messages?beta=true", askClaude)
	w.post("/posthog_code/v1/messages", askClaude)
	for i, path := range []string{"/base/anthropic/v1/messages", "/base/posthog_code/v1/messages"} {
		got := p.seen()[i]
		if got.path != path || got.header.Get("Authorization") != "Bearer "+runToken || strings.Contains(fmt.Sprint(got), hostKey) {
			t.Errorf("%+v", got)
		}
	}
	if w.used().Requests != 2 {
		t.Errorf("accounted: %+v", w.used())
	}
}

func TestBaseURLs(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	port := p.URL[strings.LastIndex(p.URL, ":"):]
	for base, want := range map[string]string{
		p.URL + "/": "/v1/messages", p.URL + "/v1": "/v1/messages", p.URL + "/api/anthropic": "/api/anthropic/v1/messages",
		"http://host.docker.internal" + port + "/v1/": "/v1/messages",
	} {
		w := newWorld(t, Route{Anthropic: Upstream{URL: base}})
		a := w.post("/anthropic/v1/messages", askClaude)
		seen := p.seen()
		last := seen[len(seen)-1]
		if a.status != 200 || last.path != want {
			t.Errorf("%s: %d at %s", base, a.status, last.path)
		}
		if _, ok := last.header["X-Api-Key"]; ok || last.header.Get("Authorization") != "" {
			t.Errorf("credentials for an endpoint without a key: %v", last.header)
		}
	}
}

func TestTooLargeARequest(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, p.both())
	ctx := t.Context()
	req, _ := http.NewRequestWithContext(ctx, "POST", w.server.URL+"/v1/messages", io.LimitReader(endless{}, maxBody+1))
	req.Header.Set("X-Api-Key", runToken)
	if res, err := http.DefaultClient.Do(req); err == nil { // else the connection was cut first
		_ = res.Body.Close()
		if res.StatusCode != 413 {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	if got := w.line(); got.Status != 413 || got.Refused != "too_large" {
		t.Errorf("logged: %+v", got)
	}
	a := w.send("POST", "/v1/messages", "x", http.Header{"X-Api-Key": {runToken}, "Content-Encoding": {"gzip"}})
	wantRefusal(t, a, 415)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestRequestLine(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, p.both())
	w.post("/anthropic/v1/messages", askClaude)
	got := w.line()
	if got.FirstByte <= 0 || got.Took < got.FirstByte || got.Took > time.Minute {
		t.Errorf("times %v, %v", got.FirstByte, got.Took)
	}
	got.FirstByte, got.Took = 0, 0
	want := Request{
		Run: runA, Method: "POST", Path: "/v1/messages", Model: "claude-opus-5-5", Status: 200,
		Sent: int64(len(askClaude)), Received: int64(len(messageJSON)), Used: w.used(),
	}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestAGatewayDoesNotForwardToItself: an address may mean us in more ways than one can
// tell from its text.
func TestAGatewayDoesNotForwardToItself(t *testing.T) {
	w := newWorld(t, Route{})
	w.mu.Lock()
	w.route.Forward = w.server.URL
	w.mu.Unlock()
	if a := w.post("/v1/messages", askClaude); a.status != http.StatusLoopDetected || !strings.Contains(a.body, "SANDBOX_LLM_GATEWAY_URL") {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.line()
	w.line()
	if n := len(w.lines); n != 2 {
		t.Errorf("%d requests", n)
	}
}
