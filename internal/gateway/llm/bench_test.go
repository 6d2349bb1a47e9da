package llm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// chunks is an upstream that streams n events of an answer, flushing each.
func chunks(n int) http.Handler {
	event := []byte(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words, as a model writes them"}}` + "\n\n")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range n {
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, `data: {"type":"message_stop"}`+"\n\n")
	})
}

// BenchmarkGateway compares an upstream with the gateway before it: "first byte" is a
// request of 48 KB whose answer is one event, "stream" an answer of 2000 events.
func BenchmarkGateway(b *testing.B) {
	body := `{"model":"claude-opus-5-5","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("some words \\n", 4<<10) + `"}]}`
	for name, n := range map[string]int{"first byte": 1, "stream": 2000} {
		up := httptest.NewServer(chunks(n))
		g := New(Config{
			Check: func(context.Context, secret.String) (task.ID, error) { return "run", nil },
			Route: func(context.Context, task.ID) (Route, error) {
				return Route{Anthropic: Upstream{URL: up.URL, Key: secret.New("k")}, Budget: Budget{MaxCost: 1e9}}, nil
			},
			Spent: func(context.Context, task.ID) (task.Tokens, error) { return task.Tokens{}, nil },
			Account: func(_ context.Context, _ task.ID, _ string, used task.Tokens) (task.Tokens, error) {
				return used, nil
			},
		})
		through := httptest.NewServer(g)
		for how, url := range map[string]string{"direct": up.URL, "gateway": through.URL} {
			b.Run(fmt.Sprintf("%s/%s", name, how), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					request(b, url+"/v1/messages", body)
				}
			})
		}
		through.Close()
		g.Close()
		up.Close()
	}
}

func request(b *testing.B, url, body string) {
	req, err := http.NewRequestWithContext(b.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "token")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, bufio.NewReader(res.Body)); err != nil || n == 0 || res.StatusCode != 200 {
		b.Fatal(res.StatusCode, n, err)
	}
}

func BenchmarkMeter(b *testing.B) {
	body := []byte(sample(b, "messages.sse"))
	b.SetBytes(int64(len(body)))
	m := newMeter(anthropic, true)
	for b.Loop() {
		m.write(body)
	}
}
