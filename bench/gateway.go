//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/gateway/llm"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// streamed is how many events the gateway's throughput is measured with. Each is sent on
// its own, as a model does, but without a pause; they are many, so that what an answer
// costs once (the way to its first byte, a commit at its end) is not what is measured.
const streamed = 20_000

// gateway asks a model that answers at once, directly and through the LLM gateway with
// its account in a state.db, in turn.
func (s *suite) gateway(ctx context.Context) ([]row, error) {
	db, err := statedb.Open(ctx, filepath.Join(s.tmp, "gateway"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	store := journal.New(db.DB, db.Dir)
	direct, gated, err := s.askInTurn(ctx, store, 1)
	if err != nil {
		return nil, err
	}
	first := row{
		"LLM gateway: first byte of an answer", ms(gated.first), "direct, " + ms(direct.first),
		"+" + ms(gated.first-direct.first), "≤ +1 ms",
	}
	direct, gated, err = s.askInTurn(ctx, store, streamed)
	if err != nil {
		return nil, err
	}
	stream := row{
		fmt.Sprintf("LLM gateway: a stream of %d events", streamed), ms(gated.whole), "direct, " + ms(direct.whole),
		ratio(direct.whole, gated.whole) + " of its throughput", "≥ 0.90",
	}
	return []row{first, stream}, nil
}

// askedTimes is how long a client waited for the first byte of an answer, and for all.
type askedTimes struct{ first, whole time.Duration }

// askInTurn asks for answers of n events and returns the medians of both ways.
func (s *suite) askInTurn(ctx context.Context, store *journal.Store, n int) (direct, gated askedTimes, err error) {
	model, stop, err := listen(model(n))
	if err != nil {
		return direct, gated, err
	}
	defer stop()
	g, err := newGateway(ctx, store, model)
	if err != nil {
		return direct, gated, err
	}
	defer g.Close()
	through, stop, err := listen(g)
	if err != nil {
		return direct, gated, err
	}
	defer stop()
	all := map[string][]askedTimes{}
	for round := range 4*s.n + 1 {
		for _, address := range []string{model, through} {
			t, err := askModel(ctx, address)
			if err != nil {
				return direct, gated, err
			}
			if round > 0 { // the first opens the connections
				all[address] = append(all[address], t)
			}
		}
	}
	return middle(all[model]), middle(all[through]), nil
}

func newGateway(ctx context.Context, store *journal.Store, model string) (*llm.Gateway, error) {
	run := task.NewID()
	spec := task.Spec{V: task.SpecVersion, Task: task.NewID(), Run: run, Team: 1, User: 1}
	if err := store.Create(ctx, spec, nil); err != nil {
		return nil, err
	}
	return llm.New(llm.Config{
		Check: func(context.Context, secret.String) (task.ID, error) { return run, nil },
		Route: func(context.Context, task.ID) (llm.Route, error) {
			return llm.Route{Anthropic: llm.Upstream{URL: model}, Budget: llm.Budget{MaxCost: 1e6}}, nil
		},
		Spent: func(ctx context.Context, run task.ID) (task.Tokens, error) {
			total, _, err := store.Usage(ctx, run)
			return total, err
		},
		Account: store.AddUsage,
	}), nil
}

func listen(h http.Handler) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }() // ends with stop
	return "http://" + l.Addr().String(), func() { _ = srv.Close() }, nil
}

// model answers with n events, each sent on its own.
func model(n int) http.HandlerFunc {
	event := `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words, as they come"}}` + "\n\n"
	end := `data: {"type":"message_delta","usage":{"input_tokens":9,"output_tokens":9}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		for range n {
			_, _ = io.WriteString(w, event)
			_ = flush.Flush()
		}
		_, _ = io.WriteString(w, end)
	}
}

// askModel sends a request of the size that agents send.
func askModel(ctx context.Context, address string) (t askedTimes, err error) {
	body := `{"model":"claude-opus-5-5","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("some words ", 4400) + `"}]}`
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return t, err
	}
	req.Header.Set("X-Api-Key", "token")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return t, err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
		return t, err
	}
	t.first = time.Since(start)
	_, err = io.Copy(io.Discard, res.Body)
	t.whole = time.Since(start)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	return t, err
}

// middle is the median of each of the times.
func middle(all []askedTimes) askedTimes {
	slices.SortFunc(all, func(a, b askedTimes) int { return cmp.Compare(a.whole, b.whole) })
	whole := all[len(all)/2].whole
	slices.SortFunc(all, func(a, b askedTimes) int { return cmp.Compare(a.first, b.first) })
	return askedTimes{first: all[len(all)/2].first, whole: whole}
}
