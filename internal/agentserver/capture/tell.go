package capture

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/relay"
	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	// maxWaiting bounds the names that wait to be told; others are not told.
	maxWaiting = 256
	// maxTold bounds the names that are remembered as told.
	maxTold = 4096
	// tellPause is between two names.
	tellPause = 5 * time.Millisecond
	// tellAgain is after how long a name that is asked for again is told again.
	tellAgain = time.Minute
)

// teller tells the host which names were asked for in vain. It never makes an answer wait.
type teller struct {
	ask   func(ctx context.Context, req wire.Egress) (net.Conn, error)
	names chan string

	mu   sync.Mutex // guards told
	told map[string]time.Time
}

func newTeller(ask func(ctx context.Context, req wire.Egress) (net.Conn, error)) *teller {
	return &teller{ask: ask, names: make(chan string, maxWaiting), told: map[string]time.Time{}}
}

// tell takes note of a name.
func (t *teller) tell(name string) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, known := t.told[name]; known && now.Sub(at) < tellAgain {
		return
	}
	if len(t.told) >= maxTold {
		clear(t.told)
	}
	select {
	case t.names <- name:
		t.told[name] = now
	default:
	}
}

// run tells the names, one at a time, until ctx ends.
func (t *teller) run(ctx context.Context) {
	for {
		select {
		case name := <-t.names:
			// The verdict is a refusal; anything else is the end of the stream too.
			if stream, err := t.ask(ctx, wire.Egress{Name: name, Lookup: true}); err == nil {
				relay.HangUp(stream)
			}
			pause(ctx, tellPause)
		case <-ctx.Done():
			return
		}
	}
}
