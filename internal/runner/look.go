package runner

import (
	"context"
	"encoding/json"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/task"
)

// Capture takes out of the sandbox of a live run what it has changed so far, for a
// look: the changes that count are taken out when the run ends.
func (r *Runner) Capture(ctx context.Context, id task.ID) ([]task.RepoResult, error) {
	client, err := r.Client(id)
	if err != nil {
		return nil, err
	}
	rec, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	hash, err := inputHash(steps.WorkspaceIn{Spec: rec.Spec})
	if err != nil {
		return nil, err
	}
	saved, done, err := r.c.Store.Step(ctx, id, "clone", hash)
	if err != nil || !done {
		return nil, err // a run without repositories has no such step
	}
	var w steps.WorkspaceOut
	if err := json.Unmarshal(saved, &w); err != nil {
		return nil, err
	}
	return r.capture(ctx, id, client, w.Repos)
}

// capture takes the changes of a run out, one at a time: two at once would work in
// the same places of the sandbox and of the repository that keeps the changes.
func (r *Runner) capture(ctx context.Context, id task.ID, c *agent.Client, repos []repo.Prepared) ([]task.RepoResult, error) {
	turn := r.turn(id)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, errs.New("runner.Capture", errs.KindOf(context.Cause(ctx)), "", "take the changes out: %w", context.Cause(ctx))
	}
	defer func() { <-turn }()
	return r.c.Steps.Capture(ctx, c, steps.CaptureIn{Repos: repos}).Repos, nil
}

// turn is held by whoever takes the changes of a run out.
func (r *Runner) turn(id task.ID) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[id] == nil {
		r.turns[id] = make(chan struct{}, 1)
	}
	return r.turns[id]
}
