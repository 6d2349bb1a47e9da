package repo

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gitproc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Execer runs one process in the sandbox, as the agent, and returns its exit code.
// The error is for a process that could not be run or followed to its end.
type Execer interface {
	Exec(ctx context.Context, cmd wire.Command, stdin io.Reader, stdout, stderr io.Writer) (int, error)
}

// inside runs git in the sandbox's copy of a repository. What answers is hostile:
// every answer is bounded and checked.
type inside struct {
	exec Execer
	dir  string
	env  []string
}

func newInside(in Execer, dir string) inside {
	return inside{exec: in, dir: dir, env: []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat",
	}}
}

func (i inside) command(args ...string) wire.Command {
	argv := []string{
		"git", "-C", i.dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"-c", "gc.auto=0", "-c", "commit.gpgSign=false", "-c", "core.safecrlf=false", "-c", "color.ui=false",
	}
	return wire.Command{Argv: append(argv, args...), Dir: "/", Env: i.env}
}

// run runs git and returns the code it ended with, and what it complained about.
func (i inside) run(ctx context.Context, stdout io.Writer, stdin io.Reader, args ...string) (int, string, error) {
	says := &gitproc.Tail{Limit: maxComplain}
	if stdin == nil {
		stdin = bytes.NewReader(nil)
	}
	code, err := i.exec.Exec(ctx, i.command(args...), stdin, stdout, says)
	if err != nil {
		return -1, "", fmt.Errorf("git %s in the sandbox: %w", verb(args), err)
	}
	return code, says.String(), nil
}

// oid runs git and returns the object id that it answers, or "" when it ends with
// a code other than 0.
func (i inside) oid(ctx context.Context, args ...string) (string, error) {
	out := limited{left: 256}
	code, _, err := i.run(ctx, &out, nil, args...)
	if err != nil || code != 0 {
		return "", err
	}
	id := string(bytes.TrimSpace(out.buf.Bytes()))
	if !isObjectID(id) {
		return "", fmt.Errorf("git %s in the sandbox answered %q", verb(args), clip(id))
	}
	return id, nil
}

// must runs git and makes an error of any code but 0.
func (i inside) must(ctx context.Context, args ...string) error {
	code, says, err := i.run(ctx, io.Discard, nil, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("in the sandbox: %w", &gitError{verb: verb(args), code: code, stderr: says})
	}
	return err
}

// Setup brings uncommitted work out in the sandbox, where Prepare could not: the
// files as they are in the user's tree, staged what was staged there. It comes
// before the agent and has nothing to do in most runs. It may be repeated.
func (c *Cache) Setup(ctx context.Context, in Execer, p Prepared) error {
	if p.Tree == "" {
		return nil
	}
	git := newInside(in, p.Repo.Dir())
	steps := [][]string{
		{"read-tree", "--reset", "-u", p.Tree}, // writes only what differs from the checkout
		{"read-tree", "-m", p.Index},
	}
	for _, args := range steps {
		if err := git.must(ctx, args...); err != nil {
			return errs.New("repo.Setup", errs.Internal, "", "bring uncommitted work along: %w", err)
		}
	}
	_, _, err := git.run(ctx, io.Discard, nil, "update-index", "-q", "--refresh") // 1: some files differ
	return err
}
