package runner

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/task"
)

// askBound is how long somebody may take to give leave.
const askBound = 30 * time.Minute

// reporter is what the services of a run tell it.
type reporter struct {
	x *execution

	mu    sync.Mutex // guards asked
	asked map[string]question
}

type question struct {
	options []task.PermissionOption
	answer  chan string // of one
}

var _ steps.Reporter = (*reporter)(nil)

// Tell implements steps.Reporter.
func (r *reporter) Tell(kind task.Kind, payload any) { r.x.story.tell(kind, payload) }

// Ask implements steps.Reporter.
func (r *reporter) Ask(ctx context.Context, p task.Permission) (string, error) {
	wait := askBound
	if r.x.spec.Mode != task.ModeInteractive {
		wait = 0
	}
	p.Deadline = time.Now().Add(wait).UTC()
	q := question{options: p.Options, answer: make(chan string, 1)}
	r.mu.Lock()
	r.asked[p.RequestID] = q
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.asked, p.RequestID)
		r.mu.Unlock()
	}()
	r.Tell(task.KindPermission, p)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	option, by := p.Default, "default"
	select {
	case option = <-q.answer:
		by = "user"
	case <-timer.C:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	r.x.story.method(wire.EventPermitted, map[string]string{"requestId": p.RequestID, "optionId": option, "by": by})
	return option, nil
}

// answer takes the answer to a question of the host's own; mine is false for those of
// the agent.
func (r *reporter) answer(in task.Input) (mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, mine := r.asked[in.Name]
	if !mine {
		return false, nil
	}
	if !slices.ContainsFunc(q.options, func(o task.PermissionOption) bool { return o.ID == in.Value }) {
		return true, fmt.Errorf("option %q is not offered by this request", in.Value)
	}
	select {
	case q.answer <- in.Value:
	default: // answered before
	}
	return true, nil
}

// End implements steps.Reporter.
func (r *reporter) End(state task.State, message string) { r.x.turns.end(state, message, false) }

// ReadFile implements steps.Reporter.
func (r *reporter) ReadFile(ctx context.Context, name string, w io.Writer) error {
	c, err := r.x.runner.Client(r.x.spec.Run)
	if err != nil {
		return err
	}
	if !path.IsAbs(name) {
		name = path.Join(r.x.spec.WorkDir(), name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- c.ArchiveOut(ctx, name, pw); _ = pw.Close() }()
	err = firstFile(pr, name, w)
	_ = pr.CloseWithError(errors.New("read enough")) // never fails
	if archived := <-done; err == nil && archived != nil && !errors.Is(archived, io.ErrClosedPipe) {
		return nil // the file was whole, what came after it is of no interest
	} else if archived != nil && errors.Is(err, io.EOF) {
		return archived
	}
	return err
}

// firstFile copies the first entry of a tar archive, which must be a plain file.
func firstFile(r io.Reader, name string, w io.Writer) error {
	archive := tar.NewReader(r)
	h, err := archive.Next()
	if err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return errs.New("runner.ReadFile", errs.Usage, "", "%s is not a plain file", name)
	}
	_, err = io.Copy(w, archive)
	return err
}

// openServices makes what the host offers to the run's sandbox, and begins to connect
// to its MCP servers, which the agent waits for.
func (x *execution) openServices(ctx context.Context) error {
	if x.s().Services == nil {
		return nil
	}
	x.reporter = &reporter{x: x, asked: map[string]question{}}
	s, err := x.s().Services(context.WithoutCancel(ctx), x.spec, x.reporter)
	if err != nil {
		return err
	}
	x.services = s
	if s.MCP == nil {
		return nil
	}
	x.mcp = make(chan connected, 1)
	go func() {
		servers, err := s.MCP(ctx)
		x.mcp <- connected{servers, err}
	}()
	return nil
}

// connected is what came of connecting to the MCP servers.
type connected struct {
	servers []wire.MCPServer
	err     error
}

// mcpServers waits for the MCP servers.
func (x *execution) mcpServers(ctx context.Context) ([]wire.MCPServer, error) {
	if x.mcp == nil {
		return nil, nil
	}
	select {
	case c := <-x.mcp:
		x.mcp <- c // for whoever asks again
		return c.servers, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// closeServices ends the services, after the link.
func (x *execution) closeServices() {
	if x.services.Close != nil {
		x.services.Close()
		x.services.Close = nil
	}
}
