package signing

import (
	"context"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

const moveRefs = `mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }`

// move makes the branch, or moves it if it is where it was expected. This is the one
// request that anybody can see; when its answer is lost, GitHub is asked what became
// of it.
func (j *job) move(ctx context.Context, p *place, branch, to, expected string, force bool) error {
	ref := "refs/heads/" + branch
	var err error
	if expected == "" {
		in := &github.Reference{Ref: github.String(ref), Object: &github.GitObject{SHA: github.String(to)}}
		_, resp, failed := j.c.rest.Git.CreateRef(ctx, j.repo.Owner, j.repo.Name, in)
		if failed != nil {
			err = explain(ctx, j.op, "make the branch "+branch, headerOf(resp), failed)
		}
	} else {
		var done struct{ UpdateRefs any }
		err = j.c.query(ctx, j.op, moveRefs, map[string]any{"input": map[string]any{
			"repositoryId": p.id,
			"refUpdates":   []any{map[string]any{"name": ref, "beforeOid": expected, "afterOid": to, "force": force}},
		}}, &done)
	}
	if err == nil {
		return nil
	}
	return j.settle(ctx, branch, to, expected, err)
}

// settle finds out whether a move that ended in an error was made.
func (j *job) settle(ctx context.Context, branch, to, expected string, err error) error {
	now, failed := j.c.look(ctx, j.op, j.repo, branch, false)
	switch {
	case failed != nil:
		return errs.New(j.op, errs.KindOf(err), "try again: it does no harm if the branch was moved", "whether the branch was moved is not known: %w", err)
	case now.tipOID() == to:
		return nil
	case now.tipOID() != expected:
		return moved(j.op, branch, now.tipOID(), expected)
	}
	return err
}
