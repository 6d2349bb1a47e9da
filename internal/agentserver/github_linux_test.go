package agentserver

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Insights/insightscli/internal/link/wire"
)

// What the host has said last is told to the agent.
func TestReadingIsToldToTheAgent(t *testing.T) {
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.reading.serve(ctx, ln, os.Getuid()) }()
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
	say := func(g wire.GitHub) {
		t.Helper()
		params, _ := json.Marshal(g)
		if _, err := s.callGitHub(params); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask(); got.Managed {
		t.Errorf("%+v", got)
	}
	for _, token := range []string{"one", "two", ""} {
		say(wire.GitHub{Token: token, Host: "h"})
		say(wire.GitHub{Pending: true}) // the one before stays in force
		if got := ask(); !got.Managed || got.Token != token || got.Host != "h" {
			t.Errorf("%+v", got)
		}
	}
	say(wire.GitHub{None: true})
	if got := ask(); got.Managed || got.Pending {
		t.Errorf("%+v", got)
	}
	if _, err := s.callGitHub(json.RawMessage(`{"token":"` + strings.Repeat("x", wire.MaxGitHub) + `"}`)); err == nil {
		t.Error("too much was taken")
	}
	cancel()
	<-done
}

// Whoever asks before it is there waits for it, a while.
func TestReadingThatIsBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reading
		r.set(wire.GitHub{Pending: true})
		got := make(chan wire.GitHubState)
		go func() { got <- r.settled(t.Context()) }()
		synctest.Wait()
		r.set(wire.GitHub{Token: "t"})
		if s := <-got; !s.Managed || s.Token != "t" {
			t.Errorf("%+v", s)
		}
		var never reading
		never.set(wire.GitHub{Pending: true})
		if s := never.settled(t.Context()); !s.Pending || s.Managed {
			t.Errorf("%+v", s)
		}
	})
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
