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
	r.Tell(task.KindPermission, p)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	option, by := p.Default, "default"
	select {
	case option = <-q.answer:
		by = "user"
	case <-timer.C:
	case <-ctx.Done():
		option, by = "", byNobody
	}
	r.mu.Lock()
	delete(r.asked, p.RequestID)
	r.mu.Unlock()
	select {
	case option = <-q.answer: // at the last moment: whoever gave it was told so
		by = "user"
	default:
	}
	r.permitted(p.RequestID, option, by)
	if by == byNobody {
		return "", context.Cause(ctx)
	}
	return option, nil
}

// byNobody says that a question has ended without an answer.
const byNobody = "cancelled"

// permitted tells how a question of the host's own has ended.
func (r *reporter) permitted(request, option, by string) {
	r.x.story.method(wire.EventPermitted, map[string]string{"requestId": request, "optionId": option, "by": by})
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

// endByAgent is the id of the input by which an agent ends its run.
const endByAgent = "finish-by-agent"

// End implements steps.Reporter. It is an input like those of people, so that the runner
// that comes after a crash knows of it.
func (r *reporter) End(ctx context.Context, state task.State, message string) error {
	in := task.Input{ID: endByAgent, Kind: task.InputEnd, Name: task.EndAfterTurn, Value: string(state), Text: message}
	if _, err := r.x.runner.c.Store.AddInput(ctx, r.x.spec.Run, in); err != nil {
		return err
	}
	r.x.turns.end(state, message, false)
	return nil
}

// Workspace implements steps.Reporter. The repositories are there before the link is.
func (r *reporter) Workspace() (steps.Workspace, error) {
	c, err := r.x.runner.Client(r.x.spec.Run)
	if err != nil {
		return steps.Workspace{}, err
	}
	return steps.NewWorkspace(r.x.repos, c), nil
}

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
	if !errors.Is(err, io.EOF) {
		cancel() // of an archive that has ended, the end itself is wanted
	}
	archived := <-done
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case archived != nil:
		return archived // there was no archive at all
	}
	return notPlain(name) // the archive is empty: pipes, sockets and devices are left out
}

func notPlain(name string) error {
	return errs.New("runner.ReadFile", errs.Usage, "", "%s is not a plain file", name)
}

// firstFile copies the first entry of a tar archive, which must be a plain file.
func firstFile(r io.Reader, name string, w io.Writer) error {
	archive := tar.NewReader(r)
	h, err := archive.Next()
	if err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return notPlain(name)
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
	for _, id := range x.turns.unanswered() {
		x.reporter.permitted(id, "", byNobody)
	}
	s, err := x.s().Services(context.WithoutCancel(ctx), x.spec, x.reporter)
	if err != nil {
		return err
	}
	x.services = s
	if s.MCP != nil {
		x.mcp = connect(ctx, s.MCP)
	}
	return nil
}

// connecting is the way to the MCP servers while it is being made.
type connecting struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when what follows is set

	servers []wire.MCPServer
	err     error
}

func connect(ctx context.Context, to func(context.Context) ([]wire.MCPServer, error)) *connecting {
	ctx, cancel := context.WithCancel(ctx)
	c := &connecting{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.servers, c.err = to(ctx)
	}()
	return c
}

// mcpServers waits for the MCP servers.
func (x *execution) mcpServers(ctx context.Context) ([]wire.MCPServer, error) {
	if x.mcp == nil {
		return nil, nil
	}
	select {
	case <-x.mcp.done:
		return x.mcp.servers, x.mcp.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// closeServices ends the services, after the link: what the agent of a run that is let go
// of still asks for waits for the next host.
func (x *execution) closeServices() {
	if x.mcp != nil {
		x.mcp.cancel()
		<-x.mcp.done
	}
	if x.services.Close != nil {
		x.services.Close()
		x.services.Close = nil
	}
}
