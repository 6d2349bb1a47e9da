package codex

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// servers are the MCP servers: those that are required, and how each has started.
type servers struct {
	mu       sync.Mutex
	required map[string]bool
	state    map[string]serverState
	changed  chan struct{} // closed and replaced with every change
}

type serverState struct {
	status string // starting, ready, failed, cancelled
	err    string
}

func newServers() *servers {
	return &servers{required: map[string]bool{}, state: map[string]serverState{}, changed: make(chan struct{})}
}

func (s *servers) require(name string) { s.required[name] = true }

// reset is for a new program.
func (s *servers) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.state)
}

// set notes how a server has started. It reports whether one that is not required has
// failed, which is only a warning.
func (s *servers) set(name string, state serverState) (warn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[name] = state
	close(s.changed)
	s.changed = make(chan struct{})
	return state.failed() && !s.required[name]
}

func (s serverState) failed() bool { return s.status == "failed" || s.status == "cancelled" }

// wait returns when the required servers are there; its error names the one that is not.
func (s *servers) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requiredTime)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(s.required)) {
		if err := s.waitFor(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *servers) waitFor(ctx context.Context, name string) error {
	began := time.Now()
	for {
		s.mu.Lock()
		state, changed := s.state[name], s.changed
		s.mu.Unlock()
		switch {
		case state.status == "ready":
			return nil
		case state.failed():
			return fmt.Errorf("the MCP server %q is required and is not connected: %s", name, state.err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the MCP server %q is required and did not connect within %s", name, time.Since(began).Round(time.Second))
		}
	}
}

// serverError is what Codex says of a server that failed, without its inner names.
func serverError(text string) string {
	if i := strings.LastIndex(text, "] error: "); i >= 0 {
		text = text[i+len("] error: "):]
	}
	text, _, _ = strings.Cut(text, ", when send ")
	const limit = 300
	if text = strings.TrimRight(oneLine(text), ": "); len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	if text == "" {
		return "it did not start"
	}
	return text
}
