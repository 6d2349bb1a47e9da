package repo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Give sends a commit of the desk into a directory of the sandbox. Those that follow are
// objects that the sandbox may have already.
func (d *Desk) Give(ctx context.Context, in Execer, dir, commit string, may ...string) error {
	to := newInside(in, dir)
	have, err := to.has(ctx, append(may, d.known...))
	if err != nil {
		return err
	}
	have = slices.DeleteFunc(have, func(oid string) bool { return oid == commit || !d.Has(ctx, oid) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	made := make(chan error, 1)
	go func() {
		err := d.c.git.run(ctx, call{
			gitDir: d.dir, bound: captureBound, out: w,
			in:   strings.NewReader(commit + "\n--not\n" + strings.Join(have, "\n") + "\n"),
			args: []string{"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"},
		})
		_ = w.CloseWithError(err) // never fails
		made <- err
	}()
	code, says, err := to.run(ctx, io.Discard, r, "unpack-objects", "-q")
	if err == nil && code != 0 {
		err = &gitError{verb: "unpack-objects", code: code, stderr: says}
	}
	_ = r.CloseWithError(io.ErrClosedPipe) // ends the other side if it still writes
	if packed := <-made; err == nil {
		err = packed
	}
	return err
}

func (d *Desk) text(ctx context.Context, args ...string) (string, error) {
	return d.c.git.text(ctx, call{gitDir: d.dir, args: args})
}

// Has reports whether an object is on the desk.
func (d *Desk) Has(ctx context.Context, oid string) bool {
	_, err := d.text(ctx, "cat-file", "-e", oid)
	return err == nil
}

// Descends reports whether a commit is another or comes after it.
func (d *Desk) Descends(ctx context.Context, commit, from string) (bool, error) {
	_, err := d.text(ctx, "merge-base", "--is-ancestor", from, commit)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// MergeBase is where two commits have parted, or "".
func (d *Desk) MergeBase(ctx context.Context, one, other string) (string, error) {
	oid, err := d.text(ctx, "merge-base", one, other)
	if exitCode(err) == 1 {
		return "", nil
	}
	return oid, err
}

// Commit is a commit on the desk.
type Commit struct {
	Tree    string
	Parents []string
}

// Commit reads a commit.
func (d *Desk) Commit(ctx context.Context, oid string) (Commit, error) {
	out, err := d.text(ctx, "rev-list", "--no-walk", "--no-commit-header", "--format=%T %P", oid)
	f := strings.Fields(out)
	if err != nil || len(f) == 0 {
		return Commit{}, fmt.Errorf("read commit %s: %w", short(oid), err)
	}
	return Commit{Tree: f[0], Parents: f[1:]}, nil
}

// Fits refuses trees that have so many more files than the run began with that nobody
// could compare them.
func (d *Desk) Fits(ctx context.Context, trees ...string) error {
	return d.c.checkGrowth(ctx, d.dir, d.known[0], trees...)
}

// MaxChain bounds the commits that Chain returns.
const MaxChain = 500

// Chain are the trees of the commits after onto up to head, the oldest first. Merges
// are among them. That there are more than [MaxChain] is an error.
func (d *Desk) Chain(ctx context.Context, onto, head string) ([]Commit, error) {
	out, err := d.text(ctx, "rev-list", "--reverse", "--topo-order", "--no-commit-header", "--format=%T %P",
		fmt.Sprintf("--max-count=%d", MaxChain+1), head, "^"+onto)
	if err != nil {
		return nil, fmt.Errorf("read the commits after %s: %w", short(onto), err)
	}
	var all []Commit
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		all = append(all, Commit{Tree: f[0], Parents: f[1:]})
	}
	if len(all) > MaxChain {
		return nil, errs.New(opDesk, errs.Conflict, "", "there are more than %d commits after %s", MaxChain, short(onto))
	}
	return all, nil
}

// maxUnpublished bounds how many commits that the server lacks are looked through.
const maxUnpublished = 10_000

// OnServer is the newest commit that the server has on the way back from head by first
// parents, or "".
func (d *Desk) OnServer(ctx context.Context, head string) (string, error) {
	ask := head + "\n"
	for _, oid := range slices.Compact(slices.Sorted(slices.Values(d.server))) {
		ask += "^" + oid + "\n"
	}
	var out limited
	out.left = maxAnswer
	err := d.c.git.run(ctx, call{gitDir: d.dir, in: strings.NewReader(ask), out: &out, args: []string{
		"rev-list", "--first-parent", "--parents", fmt.Sprintf("--max-count=%d", maxUnpublished), "--stdin",
	}})
	if err != nil {
		return "", fmt.Errorf("look for what the server has: %w", err)
	}
	on := head
	for line := range strings.Lines(out.buf.String()) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != on {
			return "", nil // the beginning of history
		}
		on = f[1]
	}
	return on, nil
}

// Bring fetches one branch.
func (d *Desk) Bring(ctx context.Context, branch string) error {
	if !validBranch(branch) {
		return errs.New(opDesk, errs.Usage, "", "%q is no name of a branch", branch)
	}
	return d.fetch(ctx, "+refs/heads/"+branch+":refs/heads/"+branch)
}
