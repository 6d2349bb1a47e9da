package onestream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/Insights/insightscli/internal/gateway/onestream"
)

// Requests follow each other on one stream, and the server ends with it.
func TestServeEndsWithItsStream(t *testing.T) {
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- onestream.Serve(t.Context(), theirs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.URL.Path)
		}))
	}()
	in := bufio.NewReader(ours)
	for _, path := range []string{"/a", "/b"} {
		go func() { _, _ = io.WriteString(ours, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n") }()
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(res.Body); string(b) != path {
			t.Errorf("%q", b)
		}
	}
	_ = ours.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// When ctx ends, the handler is told, the stream is closed, and both are waited for.
func TestServeEndsWithItsContext(t *testing.T) {
	for name, before := range map[string]bool{"before it began": true, "in the middle of a request": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ours, theirs := net.Pipe()
			over := false
			entered := make(chan struct{})
			h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(entered)
				<-r.Context().Done()
				over = true
			})
			if before {
				cancel()
			} else {
				go func() { _, _ = io.WriteString(ours, "GET / HTTP/1.1\r\nHost: h\r\n\r\n") }()
				go func() { <-entered; cancel() }()
			}
			if err := onestream.Serve(ctx, theirs, h); err != nil {
				t.Error(err)
			}
			if over == before {
				t.Errorf("the handler is over: %v", over)
			}
			if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the stream: %v", err)
			}
		})
	}
}
