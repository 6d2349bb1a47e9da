package codex

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
)

// slow answers a request when it is given up.
type slow struct{ asks chan string }

func (s slow) notified(context.Context, string, json.RawMessage) {}

func (s slow) asked(ctx context.Context, method string, _ json.RawMessage) (any, error) {
	s.asks <- method
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestTheSameRequestTwice: the ids are the program's, which may be hostile.
func TestTheSameRequestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{asks: make(chan string, 3)}
		c := &conn{peer: s, asking: map[string]context.CancelFunc{}}
		c.ctx, c.cancel = context.WithCancel(t.Context())
		for range 3 {
			c.dispatch(message{ID: json.RawMessage(`1`), Method: "item/permissions/requestApproval"})
		}
		synctest.Wait()
		c.resolved(json.RawMessage(`{"requestId":1}`))
		c.running.Wait()
		if len(s.asks) != 1 || len(c.asking) != 0 {
			t.Errorf("%d were asked and %d are left", len(s.asks), len(c.asking))
		}
		c.cancel()
	})
}
