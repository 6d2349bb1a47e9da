package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// askTime is how long a request for leave waits where somebody may be there.
const askTime = 30 * time.Minute

// maxWaiting bounds the requests for leave that wait at the same time: everybody who
// shows them keeps them, and no agent has so many calls going on.
const maxWaiting = 64

// Sentinels of answers that nobody waits for.
var (
	errNotFound = errors.New("permission request not found")
	errAnswered = errors.New("the permission request has been answered already")
)

// Who resolved a request, in wire.EventPermitted.
const (
	byUser      = "user"
	byDefault   = "default"
	byCancelled = "cancelled" // nobody: the turn ended
)

// asked are the requests for leave that wait for an answer, and what became of the last
// ones: a host that lost its link may give an answer again.
type asked struct {
	mu       sync.Mutex // guards the rest, and given of the requests
	count    int
	waiting  map[string]*request
	resolved map[string]string // the option
	order    []string          // of resolved, oldest first
}

// request is one that waits.
type request struct {
	options  []task.PermissionOption
	given    *wire.PermissionResponse
	answered chan struct{} // closed when given is set
}

// Ask asks people for leave, and waits: for the answer, for the deadline, for the end of
// ctx. It returns the id of the option. Without an answer it is p.Default, or one that
// rejects, which in a run that nobody watches is taken at once.
func (h *Host) Ask(ctx context.Context, p task.Permission) (string, error) {
	r, err := h.AskWords(ctx, p)
	return r.OptionID, err
}

// AskWords is [Host.Ask] for a driver that can hand on what people said beside the option.
func (h *Host) AskWords(ctx context.Context, p task.Permission) (wire.PermissionResponse, error) {
	var none wire.PermissionResponse
	if len(p.Options) == 0 {
		return none, errors.New("a permission request without options")
	}
	if !slices.ContainsFunc(p.Options, func(o task.PermissionOption) bool { return o.ID == p.Default }) {
		p.Default = reluctant(p.Options)
	}
	if _, err := h.journal.room(ctx); err != nil { // the deadline is counted from when people can see it
		return none, err
	}
	r, err := h.asked.begin(&p)
	if err != nil {
		return none, err
	}
	wait := askTime
	if !h.Attended {
		wait = 0
	}
	p.Deadline = time.Now().Add(wait).UTC()
	h.flush() // what people are asked about stands before the question
	h.put(permissionEvent(p))
	by := byDefault
	if h.Attended && !r.wait(ctx, wait) {
		by = byCancelled
	}
	answer := h.asked.end(p, r, by)
	if r.given != nil {
		by = byUser
	}
	b, _ := json.Marshal(map[string]string{"requestId": p.RequestID, "optionId": answer.OptionID, "by": by}) // strings
	h.put(wire.Frame{Type: wire.FrameEvent, Method: wire.EventPermitted, Data: b})
	if by == byCancelled {
		return none, ctx.Err()
	}
	return answer, nil
}

// wait waits for the answer or for d, and reports false if ctx ended before.
func (r *request) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.answered:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// reluctant is the option that allows the least.
func reluctant(options []task.PermissionOption) string {
	for _, o := range options {
		if strings.HasPrefix(o.Kind, "reject") {
			return o.ID
		}
	}
	return ""
}

// permissionEvent is the event of a request; an input that is too long for one is cut.
func permissionEvent(p task.Permission) wire.Frame {
	f := wire.Frame{Type: wire.FrameEvent, Method: wire.EventPermission}
	f.Data, _ = json.Marshal(p)
	if f.Data == nil || wire.FrameSize(&f) > wire.MaxFrame {
		p.ToolCall.Title = shortened(p.ToolCall.Title)
		p.ToolCall.Input, _ = json.Marshal(shortened(string(p.ToolCall.Input)))
		f.Data, _ = json.Marshal(p)
	}
	return f
}

// begin registers a request and gives it an id if it has none.
func (a *asked) begin(p *task.Permission) (*request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting, a.resolved = map[string]*request{}, map[string]string{}
	}
	if p.RequestID == "" {
		a.count++
		p.RequestID = "request-" + strconv.Itoa(a.count)
	}
	if len(a.waiting) >= maxWaiting {
		return nil, errors.New("too many requests for leave wait already")
	}
	if a.waiting[p.RequestID] != nil {
		return nil, fmt.Errorf("permission request %q waits already", p.RequestID)
	}
	r := &request{options: p.Options, answered: make(chan struct{})}
	a.waiting[p.RequestID] = r
	return r, nil
}

// end closes a request and returns what came of it. An answer that came at the last
// moment counts: whoever gave it was told so.
func (a *asked) end(p task.Permission, r *request, by string) wire.PermissionResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.given != nil {
		return *r.given
	}
	answer := wire.PermissionResponse{RequestID: p.RequestID}
	if by == byDefault {
		answer.OptionID = p.Default
	}
	a.resolve(answer)
	return answer
}

// resolve moves a request from the waiting to the resolved ones.
func (a *asked) resolve(r wire.PermissionResponse) {
	delete(a.waiting, r.RequestID)
	if _, again := a.resolved[r.RequestID]; !again {
		a.order = append(a.order, r.RequestID)
	}
	a.resolved[r.RequestID] = r.OptionID
	if len(a.order) > remembered {
		delete(a.resolved, a.order[0])
		a.order = a.order[1:]
	}
}

// Answer gives the answer to a request of [Host.Ask]. The same answer may be given again.
func (h *Host) Answer(r wire.PermissionResponse) error {
	a := &h.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := a.waiting[r.RequestID]
	option, before := a.resolved[r.RequestID]
	switch {
	case waiting == nil && before && option == r.OptionID:
		return nil
	case waiting == nil && before:
		return errAnswered
	case waiting == nil:
		return errNotFound
	case !slices.ContainsFunc(waiting.options, func(o task.PermissionOption) bool { return o.ID == r.OptionID }):
		return fmt.Errorf("option %q is not offered by this request", r.OptionID)
	}
	waiting.given = &r
	close(waiting.answered)
	a.resolve(r)
	return nil
}
