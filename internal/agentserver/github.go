package agentserver

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// answerTime bounds the wait for a client that does not take its answer.
const answerTime = time.Second

// reading is the credential with which programs of the agent read the run's repositories,
// in memory only.
type reading struct {
	mu    sync.Mutex
	state wire.GitHubState
}

func (r *reading) set(g wire.GitHub) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = wire.GitHubState{Managed: true, GitHub: g}
}

func (r *reading) get() wire.GitHubState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// serve tells it to whoever connects and is the agent or root, until ctx ends. Others
// are told nothing.
func (r *reading) serve(ctx context.Context, ln net.Listener, uid int) {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil:
			wait(ctx, acceptPause) // out of descriptors, or a client that left at once
			continue
		}
		if peer, ok := peerUID(conn); ok && mayKnow(peer, uid) {
			text, _ := json.Marshal(r.get()) // of strings
			_ = conn.SetDeadline(time.Now().Add(answerTime))
			_, _ = conn.Write(append(text, '\n')) // who has gone needs none
		}
		_ = conn.Close()
	}
}

// mayKnow reports whether a user may have the agent's credential: others in a sandbox, a
// database's say, may not.
func mayKnow(user, agent int) bool { return user == agent || user == 0 }

func (s *Server) callGitHub(params json.RawMessage) (any, error) {
	var g wire.GitHub
	if err := parse(params, &g); err != nil {
		return nil, err
	}
	if len(g.Token)+len(g.Host) > wire.MaxGitHub/2 {
		return nil, invalid("the token is too long")
	}
	s.reading.set(g)
	return struct{}{}, nil
}
