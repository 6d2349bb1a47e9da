package signing

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/Insights/insightscli/internal/errs"
)

// One request with a blob is enough for a few small files. What is more or larger goes
// in one push: GitHub counts requests that create something (80 a minute), and a
// request with more than 40 MiB fails.
const (
	manyBlobs  = 40
	bigUpload  = 8 << 20
	maxBlob    = 29 << 20 // base64 makes 39 MiB of it
	maxFile    = 100 << 20
	parallel   = 6
	inFlight   = 48 << 20 // bytes of blobs in memory
	sweepBound = 30 * time.Second
	uploadRef  = "refs/insights/upload/"
	// secretsFound is what push protection says.
	secretsFound = "Push cannot contain secrets"
	largeAdvice  = "leave it out, or keep it in Git LFS"
)

// job is one publication on its way.
type job struct {
	c        *Client
	op       string
	repo     Repo
	bare     string
	pushed   string // the ref that holds what was pushed, or ""
	warnings []string
}

func (j *job) warn(format string, args ...any) {
	j.warnings = append(j.warnings, fmt.Sprintf(format, args...))
}

// upload brings contents to GitHub.
func (j *job) upload(ctx context.Context, blobs []blob) error {
	var total, largest int64
	for _, b := range blobs {
		total += b.size
		largest = max(largest, b.size)
		if b.size > maxFile {
			return errs.New(j.op, errs.Conflict, largeAdvice, "%q has %d MiB, and GitHub takes %d: %w", b.path, b.size>>20, maxFile>>20, ErrTooLarge)
		}
	}
	if len(blobs) > manyBlobs || total > bigUpload {
		err := j.push(ctx, blobs)
		var refused *gitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return explain(ctx, j.op, "push the files", nil, err)
		case errors.As(err, &refused) && strings.Contains(refused.says, secretsFound):
			// Sent another way it may slip through.
			return errs.New(j.op, errs.Conflict, "remove it from the files, then stage and try again", "nothing was published: %w", ErrSecret)
		}
		if largest > maxBlob {
			i := slices.IndexFunc(blobs, func(b blob) bool { return b.size == largest })
			return errs.New(j.op, errs.Conflict, largeAdvice,
				"%q has %d MiB, which can only be pushed, and GitHub refuses that (%w): %w", blobs[i].path, largest>>20, err, ErrTooLarge)
		}
		j.warn("the files were sent one by one, because they could not be pushed: %s", err)
	}
	return j.post(ctx, blobs)
}

// post sends contents one by one.
func (j *job) post(ctx context.Context, blobs []blob) error {
	room := semaphore.NewWeighted(inFlight)
	g, one := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, b := range blobs {
		if room.Acquire(one, b.size) != nil {
			break // one has failed, or all are to end
		}
		g.Go(func() error {
			defer room.Release(b.size)
			return j.postBlob(one, b)
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return explain(ctx, j.op, "upload the files", nil, ctx.Err())
	}
	return err
}

func (j *job) postBlob(ctx context.Context, b blob) error {
	var data bytes.Buffer
	if err := j.c.git.run(ctx, call{bare: j.bare, out: &data, args: []string{"cat-file", "blob", b.oid}}); err != nil {
		return explain(ctx, j.op, fmt.Sprintf("read %q", b.path), nil, err)
	}
	got, resp, err := j.c.rest.Git.CreateBlob(ctx, j.repo.Owner, j.repo.Name, &github.Blob{
		Content: github.String(base64.StdEncoding.EncodeToString(data.Bytes())), Encoding: github.String("base64"),
	})
	if err != nil {
		return explain(ctx, j.op, fmt.Sprintf("upload %q", b.path), headerOf(resp), err)
	}
	if got.GetSHA() != b.oid {
		return errs.New(j.op, errs.Internal, "", "GitHub made %s of %q, which is %s here", short(got.GetSHA()), b.path, short(b.oid))
	}
	return nil
}

// push sends contents in one push, as the files of a commit that no branch ever has:
// rules for branches do not apply to its ref.
func (j *job) push(ctx context.Context, blobs []blob) error {
	var names strings.Builder
	for _, b := range blobs {
		fmt.Fprintf(&names, "100644 blob %s\t%s\n", b.oid, b.oid)
	}
	var tree bytes.Buffer
	err := j.c.git.run(ctx, call{bare: j.bare, in: strings.NewReader(names.String()), out: &tree, args: []string{"mktree"}})
	if err != nil {
		return err
	}
	var commit bytes.Buffer
	err = j.c.git.run(ctx, call{
		bare: j.bare, out: &commit, args: []string{"commit-tree", strings.TrimSpace(tree.String()), "-m", "upload"},
		env: []string{
			"GIT_AUTHOR_NAME=upload", "GIT_AUTHOR_EMAIL=upload@localhost", "GIT_COMMITTER_NAME=upload", "GIT_COMMITTER_EMAIL=upload@localhost",
		},
	})
	if err != nil {
		return err
	}
	j.pushed = uploadRef + strings.ToLower(rand.Text())
	return j.gitPush(ctx, strings.TrimSpace(commit.String())+":"+j.pushed)
}

// gitPush pushes one ref, with a new token if the first was refused.
func (j *job) gitPush(ctx context.Context, what string) error {
	err := j.tryPush(ctx, what)
	var ended *gitError
	if j.c.o.Refused == nil || !errors.As(err, &ended) || !strings.Contains(ended.says, "Authentication failed") &&
		!strings.Contains(ended.says, "could not read Username") {
		return err
	}
	j.c.o.Refused()
	return j.tryPush(ctx, what)
}

func (j *job) tryPush(ctx context.Context, what string) error {
	env := []string{}
	if j.c.o.Token != nil {
		token, err := j.c.o.Token(ctx)
		if err != nil {
			return err
		}
		env = authorize(j.c.web, token)
	}
	return j.c.git.run(ctx, call{bare: j.bare, env: env, bound: pushBound, args: []string{
		"push", "--quiet", "--no-verify", "--no-thin", j.c.web + "/" + j.repo.String() + ".git", what,
	}})
}

// sweep removes what push left on GitHub. The commit holds on to what it needs.
func (j *job) sweep(ctx context.Context) {
	if j.pushed == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepBound)
	defer cancel()
	err := j.gitPush(ctx, ":"+j.pushed)
	var ended *gitError
	if err != nil && !(errors.As(err, &ended) && strings.Contains(ended.says, "remote ref does not exist")) {
		j.warn("%s is left on GitHub: %s", j.pushed, err)
	}
}
