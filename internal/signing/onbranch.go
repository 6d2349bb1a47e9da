package signing

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

const (
	// maxPayload is what goes into one request of createCommitOnBranch; GitHub ends one
	// of more than 40 MiB.
	maxPayload = 35 << 20
	entryCost  = 32 // bytes of a path in a request, beside the path
	// A try may take this long, and longer with more to send.
	commitTry = 30 * time.Second
	slowLine  = 512 << 10 // bytes a second
	// scratchName is the beginning of the names of the branches that commits are made on
	// before anybody is to see them.
	scratchName = "insights/publish-tmp/"
	noOID       = "0000000000000000000000000000000000000000"
)

// part is what one commit brings.
type part struct {
	put   []blob
	gone  []string
	bytes int
}

// split makes parts of changes that are small enough for a request. What goes is in the
// first.
func (j *job) split(ctx context.Context, all []change) ([]part, error) {
	parts := []part{{}}
	var put []blob
	for _, c := range all {
		if c.deleted() {
			parts[0].gone = append(parts[0].gone, c.path)
			parts[0].bytes += len(c.path) + entryCost
			continue
		}
		put = append(put, blob{oid: c.oid, path: c.path})
	}
	if err := j.c.git.measure(ctx, j.bare, put); err != nil {
		return nil, err
	}
	for _, b := range put {
		cost := int(b.size+2)/3*4 + len(b.path) + entryCost
		if cost > j.c.payload {
			return nil, errs.New(j.op, errs.Conflict, largeAdvice+"; a GitHub App can publish up to 100 MiB (insightscli create-github-app)",
				"%q has %d MiB, and with the token of a person GitHub takes %d: %w", b.path, b.size>>20, j.c.payload/4*3>>20, ErrTooLarge)
		}
		last := &parts[len(parts)-1]
		if last.bytes > 0 && last.bytes+cost > j.c.payload {
			parts = append(parts, part{})
			last = &parts[len(parts)-1]
		}
		last.put = append(last.put, b)
		last.bytes += cost
	}
	return parts, nil
}

// partMark ends the headline of a commit that is one of several.
func partMark(i, n int) string { return fmt.Sprintf(" - part %d/%d", i, n) }

var lastPart = regexp.MustCompile(`^ - part (\d+)/(\d+)$`)

// isLastPart reports whether a message is that of the last of several commits for a
// request.
func isLastPart(text string, r Request) bool {
	headline, _, _ := strings.Cut(text, "\n")
	mark, ours := strings.CutPrefix(headline, strings.TrimSpace(r.Message))
	m := lastPart.FindStringSubmatch(mark)
	return ours && m != nil && m[1] == m[2] && text == message(headline, r.Body)
}

// branch is a branch on GitHub that commits are added to.
type branch struct {
	j    *job
	repo string // GitHub's id of the repository
	name string
	tip  string // the commit that it is at
}

// scratch makes a branch that nobody else writes to.
func (j *job) scratch(ctx context.Context, repo, at string) (*branch, error) {
	b := &branch{j: j, repo: repo, name: scratchName + strings.ToLower(rand.Text()), tip: at}
	if err := b.create(ctx); err != nil {
		b.drop(ctx) // its answer may have been lost
		return nil, err
	}
	return b, nil
}

// create makes the branch. One that is there already, at the same commit, is ours: the
// answer was lost.
func (b *branch) create(ctx context.Context) error {
	in := &github.Reference{Ref: github.String("refs/heads/" + b.name), Object: &github.GitObject{SHA: github.String(b.tip)}}
	_, resp, err := b.j.c.rest.Git.CreateRef(ctx, b.j.repo.Owner, b.j.repo.Name, in)
	if err == nil {
		return nil
	}
	err = explain(ctx, b.j.op, "make the branch "+b.name, headerOf(resp), err)
	at, failed := b.j.c.look(ctx, b.j.op, b.j.repo, b.name, false)
	switch {
	case failed != nil || at.tip == nil:
		return err
	case at.tip.oid != b.tip:
		return moved(b.j.op, b.name, at.tip.oid, "")
	}
	return nil
}

// addAll adds a commit for each part.
func (b *branch) addAll(ctx context.Context, parts []part, r Request) ([]Commit, error) {
	made := make([]Commit, 0, len(parts))
	for i, p := range parts {
		headline, tree := strings.TrimSpace(r.Message), ""
		if len(parts) > 1 {
			headline += partMark(i+1, len(parts))
		}
		if i == len(parts)-1 {
			tree = r.Tree
		}
		one, err := b.add(ctx, p, headline, r.Body, tree)
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	return made, nil
}

const addCommit = `mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) {
    commit { oid url message tree { oid } parents(first: 3) { nodes { oid } } signature { isValid } }
  }
}`

type (
	addition struct {
		Path     string `json:"path"`
		Contents []byte `json:"contents"` // as base64
	}
	deletion struct {
		Path string `json:"path"`
	}
)

// add adds a commit to the branch, which must be where it was. want is the tree that
// comes of it; "" is not known. A commit that is not as it should be is taken back.
func (b *branch) add(ctx context.Context, p part, headline, body, want string) (Commit, error) {
	request, err := b.request(ctx, p, headline, body)
	if err != nil {
		return Commit{}, err
	}
	var a struct {
		CreateCommitOnBranch struct{ Commit *commitAnswer }
	}
	err = b.j.c.send(ctx, b.j.c.timed(len(request)), b.j.op, request, &a)
	var got *tip
	switch {
	case err != nil:
		got, err = b.settle(ctx, message(headline, body), want, err)
	case a.CreateCommitOnBranch.Commit == nil:
		err = errs.New(b.j.op, errs.Unavailable, "try again", "GitHub's answer has no commit")
	default:
		got = a.CreateCommitOnBranch.Commit.tip()
	}
	if err != nil {
		return Commit{}, err
	}
	if err := b.j.checkMade(got, want); err != nil {
		return Commit{}, b.takeBack(ctx, got.oid, err)
	}
	b.tip = got.oid
	return Commit{got.oid, got.url}, nil
}

// request is the body of the request for a commit.
func (b *branch) request(ctx context.Context, p part, headline, body string) ([]byte, error) {
	data, err := b.j.c.git.contents(ctx, b.j.bare, p.put)
	if err != nil {
		return nil, err
	}
	put, gone := make([]addition, len(p.put)), make([]deletion, len(p.gone))
	for i, one := range p.put {
		put[i] = addition{one.path, data[i]}
	}
	for i, path := range p.gone {
		gone[i] = deletion{path}
	}
	words := map[string]any{"headline": strings.TrimSpace(headline)}
	if body = strings.Trim(body, "\n"); body != "" {
		words["body"] = body
	}
	return json.Marshal(map[string]any{"query": addCommit, "variables": map[string]any{"input": map[string]any{
		"branch":          map[string]any{"repositoryNameWithOwner": b.j.repo.String(), "branchName": b.name},
		"expectedHeadOid": b.tip, "message": words,
		"fileChanges": map[string]any{"additions": put, "deletions": gone},
	}}})
}

// timed is a client whose tries end after a while.
func (c *Client) timed(size int) *http.Client {
	base := http.Client{}
	if c.o.Client != nil {
		base = *c.o.Client
	}
	base.Timeout = commitTry + time.Duration(size/slowLine)*time.Second
	return c.talk(&base)
}

// settle finds out whether a commit was made whose request ended in an error.
func (b *branch) settle(ctx context.Context, text, want string, err error) (*tip, error) {
	now, failed := b.j.c.look(ctx, b.j.op, b.j.repo, b.name, false)
	switch {
	case failed != nil:
		return nil, errs.New(b.j.op, errs.KindOf(err), "try again: it does no harm if the commit was made", "whether the commit was made is not known: %w", err)
	case now.tipOID() == b.tip:
		return nil, err
	case now.tip != nil && now.tip.message == text && slices.Equal(now.tip.parents, []string{b.tip}) && (want == "" || now.tip.tree == want):
		return now.tip, nil
	}
	return nil, moved(b.j.op, b.name, now.tipOID(), b.tip)
}

// checkMade looks at a commit that GitHub made.
func (j *job) checkMade(got *tip, want string) error {
	switch {
	case !validOID.MatchString(got.oid) || want != "" && got.tree != want:
		return errs.New(j.op, errs.Conflict, appHint, "GitHub made the tree %s, which is %s here: %w", short(got.tree), short(want), ErrUserToken)
	case !got.signed:
		return errs.New(j.op, errs.Conflict,
			"on a GitHub Enterprise Server an administrator must turn on the signing of commits made on the web", "nothing was published: %w", ErrUnverified)
	}
	return nil
}

// takeBack moves the branch from a commit that is not as it should be to where it was.
func (b *branch) takeBack(ctx context.Context, made string, why error) error {
	if err := b.update(ctx, made, b.tip, true); err != nil {
		return errs.New(b.j.op, errs.KindOf(why), "look at the branch on GitHub", "%w; and the commit %s is on %s: %w", why, short(made), b.name, err)
	}
	return why
}

// update moves the branch, or removes it.
func (b *branch) update(ctx context.Context, from, to string, force bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepBound)
	defer cancel()
	u := map[string]any{"name": "refs/heads/" + b.name, "afterOid": to, "force": force}
	if from != "" {
		u["beforeOid"] = from
	}
	var done struct{ UpdateRefs any }
	err := b.j.c.query(ctx, b.j.op, moveRefs, map[string]any{"input": map[string]any{"repositoryId": b.repo, "refUpdates": []any{u}}}, &done)
	if err == nil {
		return nil
	}
	if now, failed := b.j.c.look(ctx, b.j.op, b.j.repo, b.name, false); failed == nil && (now.tipOID() == to || to == noOID && now.tip == nil) {
		return nil // done, and the answer was lost
	}
	return err
}

// remove removes a branch that was made for a commit which then failed, if it still is
// where it was.
func (b *branch) remove(ctx context.Context, at string) {
	err := b.update(ctx, at, noOID, false)
	if err == nil {
		return
	}
	now, failed := b.j.c.look(ctx, b.j.op, b.j.repo, b.name, false)
	if failed != nil || now.tipOID() == at { // else it is somebody's
		b.j.warn("the branch %s is left on GitHub, without a commit of its own: %s", b.name, err)
	}
}

// drop removes a branch of ours, wherever it is.
func (b *branch) drop(ctx context.Context) {
	if err := b.update(ctx, "", noOID, false); err != nil {
		b.j.warn("the branch %s is left on GitHub: %s", b.name, err)
	}
}
