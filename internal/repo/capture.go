package repo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// captureBound is how long the sandbox may take for all of it.
const captureBound = 15 * time.Minute

// RefPrefix is where the commits of runs are kept in a repository.
const RefPrefix = "refs/insights/"

// Capture takes out of the sandbox what was changed in a repository: a commit of
// the working tree as it is now, on top of the agent's own commits where those
// descend from the base. It lies in BareDir afterwards and, for a repository on
// this machine, under refs/insights/<run> in that repository too. Commit is empty
// when nothing was changed. A mounted repository holds its changes itself: it is
// only looked over for what the sandbox may have planted, and Error tells of it.
//
// The sandbox's git is not trusted: what it sends is bounded, checked object by
// object, and committed again here. Capture may be repeated.
func (c *Cache) Capture(ctx context.Context, in Execer, p Prepared) (task.RepoResult, error) {
	res := task.RepoResult{Org: p.Repo.Org, Name: p.Repo.Name, Base: p.Base}
	if p.Method == methodMount {
		res.Error = inspectMount(p)
		return res, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, captureBound, fmt.Errorf("the sandbox took longer than %s", captureBound))
	defer cancel()
	carrier, partial, err := c.carry(ctx, in, p)
	if err != nil || carrier == "" {
		return res, err
	}
	commit, err := c.receive(ctx, p, carrier)
	if err != nil {
		return res, err
	}
	if partial != "" {
		res.Error = "some files could not be read: " + partial
	}
	bare := c.BareDir(p.Run, p.N)
	if err := c.setRef(ctx, bare, RefPrefix+string(p.Run), commit); err != nil {
		return res, err
	}
	if err := c.count(ctx, bare, p.Base, commit, &res); err != nil {
		return res, err
	}
	res.Commit = commit
	if err := c.publish(ctx, p, commit); err != nil {
		res.Error = fmt.Sprintf("the changes are kept, but not in %s: %s", p.Origin, err)
		return res, nil
	}
	res.Ref = RefPrefix + string(p.Run)
	return res, nil
}

// carrier is what leaves the sandbox: a commit of its working tree and the objects
// that the host lacks for it.
type carrier struct {
	git   inside
	base  string
	index string // path of the index we work with
	trash string // what close removes
}

// carry makes the carrier in the sandbox and feeds it to the bare repository. It
// returns "" when nothing was changed, and what git complained about when it could
// not read every file.
func (c *Cache) carry(ctx context.Context, in Execer, p Prepared) (oid, partial string, err error) {
	k := carrier{git: newInside(in, p.Repo.Dir()), base: p.Base}
	defer k.close(context.WithoutCancel(ctx))
	head, err := k.open(ctx, p)
	if err != nil {
		return "", "", err
	}
	partial, err = k.add(ctx)
	if err != nil {
		return "", "", err
	}
	tree, err := k.git.oid(ctx, "write-tree")
	if err == nil && tree == "" {
		err = fmt.Errorf("git write-tree in the sandbox gave no tree")
	}
	if err != nil {
		return "", "", err
	}
	was, err := c.git.text(ctx, call{gitDir: c.BareDir(p.Run, p.N), args: []string{"rev-parse", "--verify", p.Base + "^{tree}"}})
	if err != nil {
		return "", "", fmt.Errorf("read base: %w", err)
	}
	parent, err := k.parent(ctx, p, head)
	if err != nil {
		return "", "", err
	}
	if tree == was && parent == p.Base {
		return "", partial, nil
	}
	oid, err = k.git.oid(ctx, "commit-tree", tree, "-p", parent, "-m", "carrier")
	if err == nil && oid == "" {
		err = fmt.Errorf("git commit-tree in the sandbox gave no commit")
	}
	if err != nil {
		return "", "", err
	}
	return oid, partial, c.pull(ctx, k, p, oid)
}

// parent is the agent's HEAD where that descends from where it began, else the base.
func (k *carrier) parent(ctx context.Context, p Prepared, head string) (string, error) {
	if head == "" || head == p.Repo.Commit {
		return p.Base, nil
	}
	code, _, err := k.git.run(ctx, io.Discard, nil, "merge-base", "--is-ancestor", p.Repo.Commit, head)
	if err == nil && code == 0 {
		return head, nil
	}
	return p.Base, err
}

// open finds the agent's HEAD and makes an index of our own out of the agent's, so
// that files that did not change are not read again. Where the agent broke its
// repository a fresh git directory stands in.
func (k *carrier) open(ctx context.Context, p Prepared) (head string, err error) {
	mine := "insights-" + p.Run.Short() + "-" + strconv.Itoa(p.N)
	k.git.env = append(k.git.env, "GIT_AUTHOR_NAME=carrier", "GIT_AUTHOR_EMAIL="+AgentEmail,
		"GIT_COMMITTER_NAME=carrier", "GIT_COMMITTER_EMAIL="+AgentEmail)
	gitDir := limited{left: 8 << 10}
	code, _, err := k.git.run(ctx, &gitDir, nil, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "", err
	}
	dir := strings.TrimSpace(gitDir.buf.String())
	base, err := k.git.oid(ctx, "rev-parse", "-q", "--verify", p.Base+"^{tree}")
	if err != nil {
		return "", err
	}
	if code != 0 || base == "" || dir != p.Repo.Dir()+"/.git" {
		return "", k.standIn(ctx, p, mine)
	}
	head, err = k.git.oid(ctx, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	k.index = dir + "/" + mine + ".index"
	k.trash = k.index
	copied, err := k.tool(ctx, "cp", "-f", "--", dir+"/index", k.index)
	k.git.env = append(k.git.env, "GIT_INDEX_FILE="+k.index)
	if err == nil && !copied {
		err = k.git.must(ctx, "read-tree", p.Base)
	}
	return head, err
}

// standIn makes a git directory of our own for a tree whose .git is gone or no
// longer ours.
func (k *carrier) standIn(ctx context.Context, p Prepared, name string) error {
	dir := "/tmp/" + name + ".git"
	k.trash = dir
	plain := newInside(k.git.exec, "/")
	format := "sha1"
	if len(p.Base) == 64 {
		format = "sha256"
	}
	if err := plain.must(ctx, "init", "-q", "--bare", "--template=", "--object-format="+format, dir); err != nil {
		return fmt.Errorf("the repository in the sandbox is broken: %w", err)
	}
	k.index = dir + "/index"
	k.git.env = append(k.git.env, "GIT_DIR="+dir, "GIT_WORK_TREE="+p.Repo.Dir(), "GIT_INDEX_FILE="+k.index,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(p.Objects, ":"))
	return k.git.must(ctx, "read-tree", p.Base)
}

// close removes what is ours from the sandbox, which may be kept for a look.
func (k *carrier) close(ctx context.Context) {
	if k.trash == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, _ = k.tool(ctx, "rm", "-rf", "--", k.trash) // nobody depends on it
}

// tool runs another program than git and reports whether it succeeded.
func (k *carrier) tool(ctx context.Context, argv ...string) (bool, error) {
	code, err := k.git.exec.Exec(ctx, wire.Command{Argv: argv, Dir: "/", Env: []string{"LC_ALL=C"}}, bytes.NewReader(nil), io.Discard, io.Discard)
	if ctx.Err() != nil {
		return false, err
	}
	return err == nil && code == 0, nil
}

// add brings our index up to the working tree. Files that the agent made
// unreadable are left out and told about.
func (k *carrier) add(ctx context.Context) (partial string, err error) {
	add := []string{"-c", "advice.addEmbeddedRepo=false", "-c", "core.excludesFile=/dev/null", "add", "--all", "--ignore-errors", "--", "."}
	code, says, err := k.git.run(ctx, io.Discard, nil, add...)
	if err == nil && code > 1 {
		// The agent's index may be broken: begin with that of the base.
		if _, err := k.tool(ctx, "rm", "-f", "--", k.index); err != nil {
			return "", err
		}
		if err := k.git.must(ctx, "read-tree", k.base); err != nil {
			return "", err
		}
		code, says, err = k.git.run(ctx, io.Discard, nil, add...)
	}
	switch {
	case err != nil || code == 0:
		return "", err
	case code == 1:
		return complaint(says), nil
	}
	return "", fmt.Errorf("in the sandbox: %w", &gitError{verb: "add", code: code, stderr: says})
}

// pull streams a pack of what the host lacks from the sandbox into the bare repository.
func (c *Cache) pull(ctx context.Context, k carrier, p Prepared, oid string) error {
	err := c.receivePack(ctx, k.git, oid+"\n--not\n"+k.base+"\n", c.BareDir(p.Run, p.N))
	if err == nil {
		return nil
	}
	return errs.New("repo.Capture", errs.Conflict, "", "take the changes out: %w", err)
}

// receivePack streams a pack from the sandbox into a bare repository, where git checks
// every object of it. Revs say what is in it, as pack-objects wants to be told.
func (c *Cache) receivePack(ctx context.Context, from inside, revs, bare string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		code, says, err := from.run(ctx, &capped{w: w, left: c.maxPack}, strings.NewReader(revs),
			"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q")
		if err == nil && code != 0 {
			err = fmt.Errorf("in the sandbox: %w", &gitError{verb: "pack-objects", code: code, stderr: says})
		}
		_ = w.CloseWithError(err) // never fails
		sent <- err
	}()
	err := c.git.run(ctx, call{
		gitDir: bare, in: r, out: io.Discard, bound: captureBound,
		// One object may not ask for more memory than the whole pack may hold.
		env: []string{"GIT_ALLOC_LIMIT=" + strconv.FormatInt(max(c.maxPack, 64<<20), 10)},
		args: []string{
			"-c", "core.bigFileThreshold=16m", "index-pack", "--stdin", "--strict", "--fsck-objects",
			"--max-input-size=" + strconv.FormatInt(c.maxPack, 10),
		},
	})
	// Whoever ended first says what went wrong; the other only lost its peer.
	var other error
	select {
	case other = <-sent:
	default:
		cancel(err) // a sandbox that goes on sending is not waited for
		_ = r.CloseWithError(io.ErrClosedPipe)
		if said := <-sent; err == nil {
			other = said
		}
	}
	if other != nil {
		err = other
	}
	if err != nil {
		removePartialPacks(bare)
	}
	return err
}

// removePartialPacks removes what a refused pack left in the bare repository.
func removePartialPacks(bare string) {
	dir := filepath.Join(bare, "objects", "pack")
	left, err := os.ReadDir(dir)
	if err != nil {
		return // nothing there
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), "tmp_") {
			_ = os.Remove(filepath.Join(dir, f.Name())) // goes with the bare repository otherwise
		}
	}
}

// capped fails once more than it was allowed is written.
type capped struct {
	w    io.Writer
	left int64
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errTooMuch
	}
	return c.w.Write(p)
}
