package fakemodel

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// chunks cuts text into parts, a handful at most, so that a stream is seen to be one.
func chunks(text string) []string {
	if text == "" {
		return nil
	}
	runes := []rune(text)
	size := max(4, (len(runes)+7)/8)
	var out []string
	for len(runes) > size {
		out = append(out, string(runes[:size]))
		runes = runes[size:]
	}
	return append(out, string(runes))
}

// sse writes events and sends each at once.
type sse struct {
	w http.ResponseWriter
}

func startSSE(w http.ResponseWriter) sse {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return sse{w}
}

func (s sse) send(name string, data []byte) error {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// play streams the answer, or as much of it as the failure lets through.
func (m *Model) play(ctx context.Context, w http.ResponseWriter, d *dialect, events []event, t *turn) {
	pause, _ := time.ParseDuration(t.answer.Slow) // checked when the script was read
	half := (len(events) + 1) / 2
	s := startSSE(w)
	for i, ev := range events {
		if i == half && !m.midway(ctx, s, d, t) {
			return
		}
		if !wait(ctx, pause) {
			return
		}
		data, err := json.Marshal(ev.data)
		if err != nil || s.send(ev.name, data) != nil {
			return
		}
	}
	if d.done != "" {
		_ = s.send("", []byte(d.done)) // a client that has gone has nobody to tell
	}
}

// midway does what a script wants in the middle of a stream. It reports whether the
// stream goes on.
func (m *Model) midway(ctx context.Context, s sse, d *dialect, t *turn) bool {
	switch f := t.failure; {
	case f != nil && f.Cut:
		panic(http.ErrAbortHandler) // the server closes the connection, without a word
	case f != nil && f.StreamError != "":
		ev := d.broken(f.StreamError)
		_ = s.send(ev.name, encode(ev.data)) // the stream ends either way
		return false
	}
	return m.held(ctx, t.answer.Hold)
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
