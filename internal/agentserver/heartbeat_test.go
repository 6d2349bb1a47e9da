package agentserver

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// TestHeartbeats: one every 30 s while a turn is going on, whatever it prints, and
// none otherwise.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(1<<20, 0)
		s := &Server{journal: j, session: newSession(&Host{Log: slog.New(slog.DiscardHandler), journal: j}, nil)}
		s.session.active = true
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.sendFrames(t.Context(), wire.NewFrameWriter(far), 0)
		}()
		time.AfterFunc(100*time.Second, func() { j.append(output(5)) })
		time.AfterFunc(125*time.Second, func() {
			s.session.mu.Lock()
			s.session.active = false
			s.session.mu.Unlock()
		})
		time.AfterFunc(time.Hour, func() { _ = near.Close(); j.append(output(1)) })

		begin := time.Now()
		r := wire.NewFrameReader(near)
		var beats []time.Duration
		for {
			var f wire.Frame
			if r.Next(&f) != nil {
				break
			}
			if f.Type == wire.FrameHeartbeat && f.Seq == 0 && string(f.Data) == `{"agent_active":true}` {
				beats = append(beats, time.Since(begin))
			}
		}
		<-done
		if len(beats) != 4 || beats[0] != 30*time.Second || beats[3] != 120*time.Second {
			t.Error(beats)
		}
	})
}
