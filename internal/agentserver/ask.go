package agentserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// askTime is how long a request for leave waits where somebody may be there.
const askTime = 30 * time.Minute

// errNotFound is the answer to an answer that nobody waits for.
var errNotFound = errors.New("permission request not found")

// asked are the requests for leave that wait for an answer.
type asked struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]request
}

type request struct {
	options []task.PermissionOption
	answer  chan string // of one
}

// Ask asks people for leave, and waits: for the answer, for the deadline, for the end of
// ctx. It returns the id of the option. Without an answer it is p.Default, which in a
// run that nobody watches is taken at once.
func (h *Host) Ask(ctx context.Context, p task.Permission) (string, error) {
	wait := askTime
	if !h.Attended {
		wait = 0
	}
	p.Deadline = time.Now().Add(wait).UTC()
	r := request{options: p.Options, answer: make(chan string, 1)}
	h.asked.mu.Lock()
	if h.asked.waiting == nil {
		h.asked.waiting = map[string]request{}
	}
	h.asked.waiting[p.RequestID] = r
	h.asked.mu.Unlock()
	defer func() {
		h.asked.mu.Lock()
		delete(h.asked.waiting, p.RequestID)
		h.asked.mu.Unlock()
	}()
	if err := h.Event(ctx, wire.EventPermission, p); err != nil {
		return "", err
	}
	option, by := p.Default, "default"
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case option = <-r.answer:
		by = "user"
	case <-timer.C:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return option, h.Event(ctx, wire.EventPermitted, map[string]string{"requestId": p.RequestID, "optionId": option, "by": by})
}

// Answer gives the answer to a request of [Host.Ask].
func (h *Host) Answer(r wire.PermissionResponse) error {
	h.asked.mu.Lock()
	defer h.asked.mu.Unlock()
	waiting, ok := h.asked.waiting[r.RequestID]
	if !ok {
		return errNotFound
	}
	offered := func(o task.PermissionOption) bool { return o.ID == r.OptionID }
	if !slices.ContainsFunc(waiting.options, offered) {
		return fmt.Errorf("option %q is not offered by this request", r.OptionID)
	}
	select {
	case waiting.answer <- r.OptionID:
	default: // answered before
	}
	return nil
}
