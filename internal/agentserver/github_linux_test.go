package agentserver

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// What the host has said last is told to the agent and to nobody else.
func TestReadingIsToldToTheAgent(t *testing.T) {
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var r reading
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	uid := os.Getuid()
	go func() { defer close(done); r.serve(ctx, ln, uid) }()
	ask := func() (s wire.GitHubState) {
		t.Helper()
		conn, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := json.NewDecoder(conn).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := ask(); s.Managed {
		t.Errorf("%+v", s)
	}
	server := &Server{}
	for _, token := range []string{"one", "two", ""} {
		params, _ := json.Marshal(wire.GitHub{Token: token, Host: "h"})
		if _, err := server.callGitHub(params); err != nil {
			t.Fatal(err)
		}
		r.set(server.reading.get().GitHub)
		if s := ask(); !s.Managed || s.Token != token || s.Host != "h" {
			t.Errorf("%+v", s)
		}
	}
	if _, err := server.callGitHub(json.RawMessage(`{"token":"` + strings.Repeat("x", wire.MaxGitHub) + `"}`)); err == nil {
		t.Error("too much was taken")
	}
	cancel()
	<-done
}

func TestReadingIsNotForOthers(t *testing.T) {
	for user, want := range map[int]bool{0: true, 1000: true, 999: false, 65534: false} {
		if mayKnow(user, 1000) != want {
			t.Errorf("user %d", user)
		}
	}
	one, other := net.Pipe()
	defer func() { _, _ = one.Close(), other.Close() }()
	if _, ok := peerUID(one); ok {
		t.Error("a pipe has no user")
	}
}
