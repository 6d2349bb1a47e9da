package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/gateway/api"
)

// ask makes one request over a stream, as a sandbox does.
func ask(t *testing.T, base, request string) (*http.Response, string) {
	t.Helper()
	p, err := api.New(base)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.ServeConn(ctx, theirs) }()
	go func() { _, _ = io.WriteString(ours, request) }()
	res, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	return res, string(body)
}

// What a sandbox writes decides the path and the body, never the address.
func TestOnlyTheOneAddress(t *testing.T) {
	var got *http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		_, _ = io.WriteString(w, "ok")
	}))
	defer srv.Close()
	for _, first := range []string{"GET /x?y=1", "GET http://169.254.169.254/x?y=1"} {
		_, body := ask(t, srv.URL+"/base", first+" HTTP/1.1\r\nHost: metadata.internal\r\nAuthorization: Bearer run\r\n\r\n")
		if body != "ok" || got.Host != strings.TrimPrefix(srv.URL, "http://") || got.URL.Path != "/base/x" || got.URL.RawQuery != "y=1" {
			t.Errorf("%s: %q arrived at %s%s", first, body, got.Host, got.URL)
		}
		if got.Header.Get("Authorization") != "Bearer run" || got.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("%s: header %v", first, got.Header)
		}
	}
}

func TestAnAPIThatIsNotThere(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	res, body := ask(t, srv.URL, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "does not answer at "+srv.URL) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// A connection that became something else would outlive its stream: there is plain HTTP.
func TestNothingIsUpgraded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Upgrade")+r.Header.Get("Connection"))
	}))
	defer srv.Close()
	res, body := ask(t, srv.URL, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if res.StatusCode != http.StatusOK || body != "" {
		t.Errorf("%d, arrived %q", res.StatusCode, body)
	}
}
