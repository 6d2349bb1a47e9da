package llm

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

func cents(v float64) float64 { return math.Round(v*1e9) / 1e9 }

func TestAccountOfEveryDialect(t *testing.T) {
	tests := []struct {
		path, file, model string
		want              task.Tokens
	}{
		{"/anthropic/v1/messages", "messages.sse", "claude-opus-5-5", task.Tokens{
			Input: 30, Output: 150, CacheRead: 2000, CacheWrite: 1000, Thought: 20, Total: 3180, Requests: 1,
			CostUSD: (30*4 + 150*20 + 2000*0.2 + 600*5 + 400*8) / 1e6,
		}},
		{"/openai/v1/responses", "responses.sse", "gpt-5.5-2026-04-23", task.Tokens{
			Input: 500, Output: 150, CacheRead: 2000, CacheWrite: 500, Thought: 100, Total: 3150, Requests: 1,
			CostUSD: (500*5 + 150*30 + 2000*0.5 + 500*5) / 1e6,
		}},
		{"/openai/v1/chat/completions", "chat.sse", "gpt-4.1-2025-04-14", task.Tokens{
			Input: 20, Output: 30, CacheRead: 100, Thought: 10, Total: 150, Requests: 1, CostUSD: (20*2 + 30*8 + 100*0.5) / 1e6,
		}},
	}
	for _, tt := range tests {
		body := sample(t, tt.file)
		p := newProvider(t, says(events, body))
		w := newWorld(t, p.both())
		if a := w.post(tt.path, `{"model":"m","stream":true}`); a.status != 200 || a.body != body {
			t.Errorf("%s: the answer was changed: %d %q", tt.path, a.status, a.body)
		}
		got := w.used()
		got.CostUSD, tt.want.CostUSD = cents(got.CostUSD), cents(tt.want.CostUSD)
		if got != tt.want || w.models[0] != tt.model {
			t.Errorf("%s: %s %+v\nwant %s %+v", tt.path, w.models[0], got, tt.model, tt.want)
		}
	}
}

// Whoever asks one question after the other is never ahead of the account: the end of an
// answer is not passed on before it is written.
func TestAccountIsWrittenBeforeTheEnd(t *testing.T) {
	goOn := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		_, _ = io.WriteString(w, sample(t, "messages.sse"))
		w.(http.Flusher).Flush()
		select { // the connection stays open after the last event
		case <-goOn:
		case <-r.Context().Done():
		}
	})
	w := newWorld(t, p.both())
	req, _ := http.NewRequestWithContext(t.Context(), "POST", w.server.URL+"/v1/messages", strings.NewReader(askClaude))
	req.Header.Set("X-Api-Key", runToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, len(sample(t, "messages.sse")))); err != nil {
		t.Fatal(err)
	}
	if w.used().Requests != 1 {
		t.Error("the client has the last event and nothing is accounted")
	}
	close(goOn)
}

func TestClientThatGoesAway(t *testing.T) {
	gone := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		body := sample(t, "messages.sse")
		_, _ = io.WriteString(w, body[:strings.Index(body, "event: message_delta")])
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the gateway hangs up too: nobody pays for words that nobody reads
		close(gone)
	})
	w := newWorld(t, p.both())
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", w.server.URL+"/v1/messages", strings.NewReader(askClaude))
	req.Header.Set("X-Api-Key", runToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = res.Body.Read(make([]byte, 1))
	cancel()
	<-gone
	_ = res.Body.Close()
	line := w.line()
	if used := w.used(); used.Requests != 1 || used.Input != 30 || used.CacheRead != 2000 || !line.Estimated || line.Used != used {
		t.Errorf("accounted %+v, logged %+v", used, line)
	}
}

func TestProviderThatCutsTheStream(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		body := sample(t, "messages.sse")
		_, _ = io.WriteString(w, body[:strings.Index(body, "event: message_delta")])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	w := newWorld(t, p.both())
	req, _ := http.NewRequestWithContext(t.Context(), "POST", w.server.URL+"/v1/messages", strings.NewReader(askClaude))
	req.Header.Set("X-Api-Key", runToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the client takes a cut stream for a whole one")
	}
	if used := w.used(); used.Requests != 1 || used.Input != 30 || used.Output == 0 || !w.line().Estimated {
		t.Errorf("accounted %+v", used)
	}
}

func TestProviderThatCompressesUnasked(t *testing.T) {
	for path, body := range map[string]string{"/v1/messages": messageJSON, "/v1/responses": sample(t, "responses.sse")} {
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("asked for %q", got)
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", plain)
			if strings.HasPrefix(body, "event") {
				w.Header().Set("Content-Type", events)
			}
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, body)
			_ = z.Close()
		})
		w := newWorld(t, p.both())
		if a := w.post(path, askClaude); a.body != body || a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %+v", path, a)
		}
		if w.used().Total == 0 || w.line().Estimated {
			t.Errorf("%s: accounted %+v", path, w.used())
		}
	}
}

func TestCountingTokensCostsNothing(t *testing.T) {
	p := newProvider(t, says(plain, `{"input_tokens":14}`))
	w := newWorld(t, p.both())
	w.route.Budget = Budget{MaxCost: 1, MaxTokens: 1}
	w.spent[runA] = task.Tokens{Total: 5}
	if a := w.post("/anthropic/v1/messages/count_tokens", `{"model":"unheard-of"}`); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if w.used().Requests != 0 {
		t.Errorf("accounted %+v", w.used())
	}
}

func TestBudgetEnds(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, p.both())
	w.route.Budget = Budget{MaxTokens: 300} // an answer uses 152
	for range 2 {
		if a := w.post("/anthropic/v1/messages", askClaude); a.status != 200 {
			t.Fatalf("%+v", a)
		}
	}
	wantRefusal(t, w.post("/anthropic/v1/messages", askClaude), 403, "--max-tokens", "304", "300")
	wantRefusal(t, w.post("/openai/v1/responses", `{"model":"gpt-5.5"}`), 403, "--max-tokens")
	if n := len(p.seen()); n != 2 {
		t.Errorf("%d requests went out", n)
	}
	if n := w.notice(); strings.Count(n, "warn") != 1 || !strings.Contains(n, "--max-tokens") {
		t.Errorf("notices: %s", n)
	}
	w.mu.Lock()
	w.route.Budget = Budget{MaxCost: 0.0005}
	w.mu.Unlock()
	wantRefusal(t, w.post("/anthropic/v1/messages", askClaude), 403, "--max-cost", "$0.0005")
}

// With a bound on the cost nothing goes out whose cost is not known, wherever in the
// request its model is named; without one it is counted as unpriced.
func TestModelWithoutAPrice(t *testing.T) {
	p := newProvider(t, says(plain, `{"model":"other","usage":{"input_tokens":5,"output_tokens":6}}`))
	w := newWorld(t, p.both())
	late := `{"messages":"` + strings.Repeat("long ", 100_000) + `","model":"unheard-of"}`
	for _, body := range []string{
		`{"model":"unheard-of"}`, late, `{"model":"claude-opus-5-5","model":"unheard-of"}`, `{"MODEL":"unheard-of"}`,
		`{"m\u006fdel":"unheard-of","model":"claude-opus-5-5"}`,
	} {
		w.mu.Lock()
		w.route.Budget.MaxCost = 1
		w.mu.Unlock()
		wantRefusal(t, w.post("/anthropic/v1/messages", body), 403, "unheard-of", "INSIGHTS_LLM_PRICES", "--max-cost")
	}
	for _, body := range []string{`{}`, `[]`, ``, `no JSON`, `{"model":5}`, `{"messages":[{"model":"claude-opus-5-5"}]}`, "{\x00\"\x00m\x00"} {
		a := w.post("/anthropic/v1/messages", body)
		if a.status != 400 && a.status != 403 {
			t.Errorf("%q: %+v", body, a)
		}
	}
	for _, r := range p.seen() {
		t.Errorf("went out: %.60q", r.body)
	}
	if w.used().Requests != 0 {
		t.Fatalf("accounted: %+v", w.used())
	}
	w.route.Budget.MaxCost = 0
	if a := w.post("/anthropic/v1/messages", late); a.status != 200 || p.seen()[0].body != late {
		t.Fatalf("%d", a.status)
	}
	if used := w.used(); used.Unpriced != 1 || used.Total != 11 || used.CostUSD != 0 {
		t.Errorf("accounted: %+v", used)
	}
	w.route.Budget.MaxCost = 1
	wantRefusal(t, w.post("/anthropic/v1/messages", askClaude), 403, "INSIGHTS_LLM_PRICES")
}

func TestChatStreamsSayWhatTheyUse(t *testing.T) {
	p := newProvider(t, says(events, sample(t, "chat.sse")))
	w := newWorld(t, p.both())
	big := strings.Repeat("x", maxEdited)
	tests := []struct{ in, out string }{
		{`{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":true,"messages":[{"a":"}"}]}` + "\n", `{"stream":true,"messages":[{"a":"}"}],"stream_options":{"include_usage":true}}` + "\n"},
		{`{"model":"m","stream":false}`, ""},
		{`{"model":"m","messages":[{"stream":true}]}`, ""},
		{`{"stream":true,"stream_options":{"include_usage":true}}`, ""},
		{`{"stream":true,"big":"` + big + `"}`, `{"stream":true,"big":"` + big + `","stream_options":{"include_usage":true}}`},
		{`not JSON`, ""},
	}
	for i, tt := range tests {
		if tt.out == "" {
			tt.out = tt.in
		}
		if a := w.post("/openai/v1/chat/completions", tt.in); a.status != 200 {
			t.Errorf("%+v", a)
		}
		got := p.seen()[i]
		if got.body != tt.out || got.length >= 0 && got.length != int64(len(tt.out)) {
			t.Errorf("%.80q became %.80q (length %d)", tt.in, got.body, got.length)
		}
		if len(tt.out) < maxEdited && got.length < 0 {
			t.Errorf("%q went out in chunks", tt.in)
		}
	}
	wantRefusal(t, w.post("/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":false}}`), 400, "include_usage")
	wantRefusal(t, w.post("/v1/responses", `{"model":"m","background":true}`), 400, "background")
}

// The body of a request reaches the provider as it was, whatever its pieces.
func TestUploadInPieces(t *testing.T) {
	in := `{"stream":true,"messages":[{"content":"say \"}\" and \\"}],"model":"gpt-4.1"}  `
	want := strings.Replace(in, "}  ", includeUsage+"}  ", 1)
	for size := 1; size < len(in)+5; size++ {
		u := newUpload(strings.NewReader(in), endpoint{dialect: openai, path: pathChat}, func(m string) bool { return m == "gpt-4.1" })
		var out strings.Builder
		buf := make([]byte, size)
		for {
			n, err := u.Read(buf)
			out.Write(buf[:n])
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if s := u.sent(); out.String() != want || !s.complete || s.model != "gpt-4.1" || s.bytes != int64(len(in)) {
			t.Fatalf("in pieces of %d: %q, %+v", size, out.String(), s)
		}
	}
}

func TestRecordingThatFailsIsTold(t *testing.T) {
	p := newProvider(t, says(plain, messageJSON))
	w := newWorld(t, p.both())
	w.gateway.cfg.Account = func(context.Context, task.ID, string, task.Tokens) (task.Tokens, error) {
		return task.Tokens{}, fmt.Errorf("the disk is full")
	}
	if a := w.post("/anthropic/v1/messages", askClaude); a.status != 200 || !strings.Contains(w.notice(), "error: what a request") {
		t.Errorf("%d, notices %s", a.status, w.notice())
	}
}

// TestBudgetOfManyAtOnce: who asks a hundred times at once gets no hundred answers of
// which none has been accounted yet.
func TestBudgetOfManyAtOnce(t *testing.T) {
	const clients = 40
	arrived, goOn := make(chan struct{}, clients), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-goOn
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"claude-opus-5-5","usage":{"input_tokens":600,"output_tokens":600}}`)
	})
	route := p.both()
	route.Budget.MaxTokens = 1000
	w := newWorld(t, route)
	status := make(chan int, clients)
	var asking sync.WaitGroup
	for range clients {
		asking.Go(func() { status <- w.post("/v1/messages", askClaude).status })
	}
	for range maxAtOnce {
		<-arrived
	}
	close(goOn)
	asking.Wait()
	close(status)
	got := map[int]int{}
	for s := range status {
		got[s]++
	}
	if got[200] != maxAtOnce || got[403] != clients-maxAtOnce {
		t.Errorf("%v", got)
	}
	if n := len(w.gateway.queues.runs); n != 0 {
		t.Errorf("%d queues are left", n)
	}
}

// TestDearerTiersAreRefusedUnderABudget: a request must not choose a price that the list does
// not know.
func TestDearerTiersAreRefusedUnderABudget(t *testing.T) {
	for _, tier := range []string{`"service_tier":"priority"`, `"speed":"fast"`} {
		p := newProvider(t, says("application/json", `{"usage":{"input_tokens":1,"output_tokens":1}}`))
		route := p.both()
		w := newWorld(t, route)
		body := `{"model":"gpt-5.5",` + tier + `}`
		if a := w.post("/v1/responses", body); a.status != 200 {
			t.Errorf("%s without a budget: %d %s", tier, a.status, a.body)
		}
		w.mu.Lock()
		w.route.Budget.MaxCost = 1
		w.mu.Unlock()
		if a := w.post("/v1/responses", body); a.status != 403 {
			t.Errorf("%s: %d %s", tier, a.status, a.body)
		}
	}
}
