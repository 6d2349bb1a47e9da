package agentserver

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	// answerTime bounds the wait for a client that does not take its answer.
	answerTime = time.Second
	// pendingTime is how long one is held for a credential that is being made.
	pendingTime = 10 * time.Second
	// maxReaders bounds the clients that are held.
	maxReaders = 32
)

// reading is the credential with which programs of the agent read the run's repositories,
// in memory only.
type reading struct {
	mu      sync.Mutex
	state   wire.GitHubState
	changed chan struct{} // closed when state is another; made by who waits
}

// set takes what the host says. One that is being made leaves the one before in force.
func (r *reading) set(g wire.GitHub) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.Pending && r.state.Managed {
		return
	}
	r.state = wire.GitHubState{Managed: !g.Pending && !g.None, GitHub: g}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *reading) get() (state wire.GitHubState, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.state, r.changed
}

// settled is what there is, after a while if it is being made.
func (r *reading) settled(ctx context.Context) wire.GitHubState {
	t := time.NewTimer(pendingTime)
	defer t.Stop()
	for {
		state, changed := r.get()
		if !state.Pending {
			return state
		}
		select {
		case <-changed:
		case <-t.C:
			return state
		case <-ctx.Done():
			return state
		}
	}
}

// serve tells it to whoever connects and is the agent or root, until ctx ends. Others
// are told nothing.
func (r *reading) serve(ctx context.Context, ln net.Listener, uid int) {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	slots := make(chan struct{}, maxReaders)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := ln.Accept()
		if err != nil {
			<-slots
			if ctx.Err() != nil {
				return
			}
			wait(ctx, acceptPause) // out of descriptors, or a client that left at once
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			defer func() { _ = conn.Close() }()
			if peer, ok := peerUID(conn); ok && mayKnow(peer, uid) {
				text, _ := json.Marshal(r.settled(ctx)) // of strings
				_ = conn.SetDeadline(time.Now().Add(answerTime))
				_, _ = conn.Write(append(text, '\n')) // who has gone needs none
			}
		})
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
