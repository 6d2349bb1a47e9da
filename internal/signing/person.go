package signing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

const (
	appHint  = "publish as a GitHub App (insightscli create-github-app), or leave this out"
	userHint = "the token needs write access to the repository: a classic one the scopes repo and workflow (gh auth refresh -s repo,workflow)," +
		" a fine-grained one contents, pull requests and workflows"
)

// advise gives an error the hint that helps whoever publishes with a person's token.
func (c *Client) advise(err error) error {
	var e *errs.Error
	if !c.o.UserToken || !errors.As(err, &e) || e.Hint != permissionHint {
		return err
	}
	return &errs.Error{Op: e.Op, Kind: e.Kind, Hint: userHint, Err: err}
}

// asUser publishes with the token of a person. One commit goes straight to the branch;
// what takes more, or may come out otherwise than it is here, is made on a branch of its
// own first.
func (j *job) asUser(ctx context.Context, p *place, r Request, all []change) ([]Commit, error) {
	if len(r.Parents) > 1 {
		return j.mergeAsUser(ctx, p, r)
	}
	if err := checkSayable(j.op, all); err != nil {
		return nil, err
	}
	parts, err := j.split(ctx, all)
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 && !clash(all) {
		return j.direct(ctx, p, r, parts[0])
	}
	b, err := j.scratch(ctx, p.id, r.Parents[0])
	if err != nil {
		return nil, err
	}
	defer b.drop(ctx)
	made, err := b.addAll(ctx, parts, r)
	if err != nil {
		return nil, err
	}
	return made, j.move(ctx, p, r.Branch, made[len(made)-1].SHA, r.Expected, false)
}

// direct makes the one commit on the branch itself, which is made first if there is none,
// and removed again if there is no commit then.
func (j *job) direct(ctx context.Context, p *place, r Request, part part) ([]Commit, error) {
	b := branch{j: j, repo: p.id, name: r.Branch, tip: r.Parents[0]}
	if r.Expected == "" {
		if err := b.create(ctx); err != nil {
			return nil, err
		}
	}
	made, err := b.add(ctx, part, r.Message, r.Body, r.Tree)
	if err != nil && r.Expected == "" {
		b.remove(ctx, r.Parents[0])
	}
	return []Commit{made}, err
}

// rewriteAsUser makes the commits on a branch of their own, and moves the real one there.
func (j *job) rewriteAsUser(ctx context.Context, p *place, r Rewrite, chain []local) ([]Commit, error) {
	parts := make([][]part, len(chain))
	for i, one := range chain {
		err := checkSayable(j.op, one.changes)
		if err == nil {
			parts[i], err = j.split(ctx, one.changes)
		}
		if err != nil {
			return nil, err
		}
	}
	b, err := j.scratch(ctx, p.id, r.Onto)
	if err != nil {
		return nil, err
	}
	defer b.drop(ctx)
	var made []Commit
	for i, one := range chain {
		headline, body, _ := strings.Cut(one.message, "\n")
		done, err := b.addAll(ctx, parts[i], Request{Message: headline, Body: body, Tree: one.tree})
		if err != nil {
			return nil, err
		}
		made = append(made, done...)
	}
	return made, j.move(ctx, p, r.Branch, made[len(made)-1].SHA, r.Expected, true)
}

// mergeAsUser lets GitHub merge, on a branch of its own, what git merges here to the same.
func (j *job) mergeAsUser(ctx context.Context, p *place, r Request) ([]Commit, error) {
	tree, err := j.c.git.merge(ctx, j.op, j.bare, r.Parents[0], r.Parents[1])
	if len(r.Parents) > 2 || err == nil && tree != r.Tree || errors.Is(err, ErrMergeConflict) {
		return nil, errs.New(j.op, errs.Conflict, "rebase onto it (git rebase), then use git_signed_rewrite; or "+appHint,
			"GitHub has to make the merge itself, and this one was resolved by hand: %w", ErrUserToken)
	}
	if err != nil {
		return nil, err
	}
	b, err := j.scratch(ctx, p.id, r.Parents[0])
	if err != nil {
		return nil, err
	}
	defer b.drop(ctx)
	made, err := b.merge(ctx, r)
	if err != nil {
		return nil, err
	}
	return []Commit{made}, j.move(ctx, p, r.Branch, made.SHA, r.Expected, false)
}

// merge brings a commit into the branch. When it says that there is nothing to do, an
// answer was lost.
func (b *branch) merge(ctx context.Context, r Request) (Commit, error) {
	j := b.j
	in := &github.RepositoryMergeRequest{
		Base: github.String(b.name), Head: github.String(r.Parents[1]), CommitMessage: github.String(message(r.Message, r.Body)),
	}
	_, resp, err := j.c.rest.Repositories.Merge(ctx, j.repo.Owner, j.repo.Name, in)
	if statusOf(err) == 409 {
		return Commit{}, errs.New(j.op, errs.Conflict, "rebase onto it (git rebase), resolve the conflicts, then use git_signed_rewrite",
			"GitHub cannot merge them: %w", ErrMergeConflict)
	}
	if err != nil {
		return Commit{}, explain(ctx, j.op, "merge", headerOf(resp), err)
	}
	at, err := j.c.look(ctx, j.op, j.repo, b.name, false)
	switch {
	case err != nil:
		return Commit{}, err
	case at.tip == nil || strings.Join(at.tip.parents, " ") != strings.Join(r.Parents, " "):
		return Commit{}, errs.New(j.op, errs.Internal, "", "GitHub made no merge of %s and %s", short(r.Parents[0]), short(r.Parents[1]))
	}
	return Commit{at.tip.oid, at.tip.url}, j.checkMade(at.tip, r.Tree)
}

// checkSayable refuses what the request for a commit has no words for.
func checkSayable(op string, all []change) error {
	var cannot []string
	for _, c := range all {
		if what := unsayable(c); what != "" {
			cannot = append(cannot, fmt.Sprintf("%q (%s)", c.path, what))
		}
	}
	if len(cannot) == 0 {
		return nil
	}
	more := ""
	if n := len(cannot) - maxListed; n > 0 {
		cannot, more = cannot[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return errs.New(op, errs.Conflict, appHint, "%s%s: %w", strings.Join(cannot, ", "), more, ErrUserToken)
}

// unsayable is what a change is that cannot be said, or "". A file that is new becomes a
// plain one, and one that is there keeps its mode.
func unsayable(c change) string {
	switch {
	case c.mode == modeModule || c.was == modeModule:
		return "a submodule"
	case c.deleted():
		return ""
	case c.mode == modeLink || c.was == modeLink:
		return "a symbolic link"
	case c.was == modeNone && c.mode != modeFile:
		return "a new executable file"
	case c.was != modeNone && c.was != c.mode:
		return "a change of mode"
	}
	return ""
}
