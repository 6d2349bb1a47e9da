package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// PrepareOptions say for whom a repository is prepared.
type PrepareOptions struct {
	Run        task.ID
	N          int    // number of the repository in the run, from 0
	UID, GID   int    // owner of the files in the sandbox
	WorkDir    string // directory of the run for this repository; emptied first, removed by the caller
	Overlay    bool   // the provider serves sandbox.MountOverlay
	TrustMount bool   // mount even what cannot be protected (task.Repo.Mount)
}

// Prepared is a repository that is ready to be shown in a sandbox. It is plain data:
// a later process goes on with it.
type Prepared struct {
	Run    task.ID   `json:"run"`
	N      int       `json:"n"`
	Repo   task.Repo `json:"repo"`   // Branch and Commit are what HEAD is at
	Method string    `json:"method"` // overlay, reflink, copy or mount

	Mounts []sandbox.Mount `json:"mounts"`
	Base   string          `json:"base"` // the commit that changes are measured against
	// Target is the branch on the server that the work is meant for: the one that the run
	// began with, if it was there then, else the default branch. Empty: not known.
	Target string `json:"target,omitempty"`
	// Tree and Index are set when uncommitted work comes along: the tree of the
	// files, and of what was staged. Setup brings them out.
	Tree  string `json:"tree,omitempty"`
	Index string `json:"index,omitempty"`

	Origin  string   `json:"origin"`  // git directory of the source on this machine
	Objects []string `json:"objects"` // object directories, as the sandbox sees them
	// Submodules are those a mounted repository had before.
	Submodules []string `json:"submodules,omitempty"`
	Notices    []string `json:"notices,omitempty"`
}

// Methods of Prepared.
const (
	methodOverlay = "overlay"
	methodMount   = "mount"
)

// Prepare makes the mounts that show repository r, as Resolve returned it, in a
// sandbox. The checkout it is made from is kept in the cache, marked as in use by
// the run until Release. It may be repeated: what an earlier try left is replaced.
func (c *Cache) Prepare(ctx context.Context, r task.Repo, o PrepareOptions) (Prepared, error) {
	p, err := c.prepare(ctx, r, o)
	var broken *brokenObjects
	if r.Source != task.RepoRemote || !errors.As(err, &broken) {
		return p, err
	}
	// Our mirror has lost something that git does not look at before it is wanted.
	if err := c.breakMirror(r); err != nil {
		return p, err
	}
	return c.prepare(ctx, r, o)
}

func (c *Cache) prepare(ctx context.Context, r task.Repo, o PrepareOptions) (Prepared, error) {
	p := Prepared{Run: o.Run, N: o.N, Repo: r}
	if !o.Run.Valid() {
		return p, errs.New("repo.Prepare", errs.Internal, "", "run id %q is not one", o.Run)
	}
	s, st, release, err := c.source(ctx, r)
	if err != nil {
		return p, err
	}
	defer release()
	p.Repo.Branch, p.Repo.Commit, p.Base, p.Target = st.branch, st.commit, st.commit, st.target
	p.Notices = append(p.Notices, st.notices...)
	if err := RemoveAll(o.WorkDir); err != nil {
		return p, err
	}
	if err := os.MkdirAll(o.WorkDir, 0o700); err != nil {
		return p, fmt.Errorf("prepare workspace: %w", err)
	}
	if r.Mount {
		return c.prepareMount(ctx, s, p, o)
	}
	p.Origin = s.commonDir
	p.Notices = append(p.Notices, c.limits(ctx, s, st.commit)...)
	if err := c.makeBare(ctx, s, p); err != nil {
		return p, err
	}
	release() // from here on the bare repository tells that the mirror is borrowed from
	if r.Uncommitted {
		if err := c.bringUncommitted(ctx, s, &p); err != nil {
			return p, err
		}
	}
	dirs, err := c.lend(ctx, s, p, o)
	if err != nil {
		return p, err
	}
	return c.lay(ctx, s, p, dirs, o)
}

// lend decides which object directories the sandbox is shown: the source's own, or
// a copy where the agent cannot read them, and those of the uncommitted work.
func (c *Cache) lend(ctx context.Context, s *source, p Prepared, o PrepareOptions) ([]string, error) {
	own := filepath.Join(c.BareDir(p.Run, p.N), "objects")
	if readableBy(s, owner{uid: o.UID, gid: o.GID}) {
		if p.Tree == "" {
			return s.objects, nil
		}
		return append([]string{own}, s.objects...), giveAway(own, o.UID, o.GID)
	}
	if err := c.copyObjects(ctx, s, p); err != nil {
		return nil, err
	}
	if p.Tree != "" {
		if err := c.copyUncommitted(ctx, p); err != nil {
			return nil, err
		}
	}
	return []string{own}, giveAway(own, o.UID, o.GID)
}

// source is the repository on this machine that r is served from, and where in it
// the run begins. The commit that was resolved earlier stands. A mirror is ours until
// release is called, which may be done more than once.
func (c *Cache) source(ctx context.Context, r task.Repo) (s *source, st start, release func(), err error) {
	if r.Source == task.RepoRemote {
		m, unlock, err := c.mirror(ctx, r)
		if err != nil {
			return nil, start{}, nil, err
		}
		return m.src, m.start, sync.OnceFunc(unlock), nil
	}
	release = func() {}
	s, err = c.open(ctx, r.Path)
	if err != nil {
		return nil, start{}, nil, err
	}
	if r.Commit == "" {
		if st, err = c.start(ctx, s, r.Branch); err == nil {
			st.target, err = c.target(ctx, s, st.branch)
		}
		return s, st, release, err
	}
	if found, err := c.commit(ctx, s, r.Commit); err != nil || found != r.Commit {
		return nil, start{}, nil, errs.New("repo.Prepare", errs.NotFound, "start the run again",
			"commit %s is not in %q any more", short(r.Commit), r.Path)
	}
	st = start{branch: r.Branch, commit: r.Commit, current: true}
	st.target, err = c.target(ctx, s, st.branch)
	return s, st, release, err
}

// target is the branch of origin that work on a branch of this machine is meant for, as
// far as the repository knows.
func (c *Cache) target(ctx context.Context, s *source, branch string) (string, error) {
	if branch == "" {
		return "", nil
	}
	found, err := c.commit(ctx, s, "refs/remotes/origin/"+branch)
	if err != nil || found == "" {
		return "", err
	}
	return branch, nil
}

// makeBare makes the bare repository that will hold what the run changed. It keeps
// the base from the beginning.
func (c *Cache) makeBare(ctx context.Context, s *source, p Prepared) error {
	d := gitDir{path: c.BareDir(p.Run, p.N), format: s.format, objects: s.objects, shallow: s.shallowFile()}
	if err := RemoveAll(d.path); err != nil {
		return err
	}
	if err := d.make(); err != nil {
		return err
	}
	return c.setRef(ctx, d.path, "refs/insights/base", p.Base)
}

func (c *Cache) setRef(ctx context.Context, gitDir, ref, oid string) error {
	err := c.git.run(ctx, call{gitDir: gitDir, args: []string{"update-ref", ref, oid}})
	if err != nil {
		return fmt.Errorf("record %s: %w", ref, err)
	}
	return nil
}

// lay puts the checkout where the sandbox will find it.
func (c *Cache) lay(ctx context.Context, s *source, p Prepared, objects []string, o PrepareOptions) (Prepared, error) {
	entry, err := c.checkout(ctx, s, p.Repo.Commit, o)
	if err != nil {
		return p, err
	}
	dirs, masks, err := objectMounts(objects, o)
	if err != nil {
		return p, err
	}
	for _, m := range dirs {
		p.Objects = append(p.Objects, m.Target)
	}
	files, err := c.gitFiles(ctx, s, p)
	if err != nil {
		return p, err
	}
	tree := sandbox.Mount{Kind: sandbox.MountBind, Source: filepath.Join(o.WorkDir, "tree"), Target: p.Repo.Dir()}
	if o.Overlay {
		p.Method = methodOverlay
		tree = sandbox.Mount{
			Kind: sandbox.MountOverlay, Source: entry, Target: p.Repo.Dir(),
			Upper: filepath.Join(o.WorkDir, "upper"), Work: filepath.Join(o.WorkDir, "work"),
		}
		err = makeUpper(tree, files, o)
	} else {
		p.Method, err = c.makeCopy(ctx, entry, tree.Source, files, o)
	}
	if err != nil {
		return p, err
	}
	p.Mounts = append([]sandbox.Mount{tree}, append(dirs, masks...)...)
	return p, nil
}

func makeUpper(m sandbox.Mount, files map[string]string, o PrepareOptions) error {
	for _, dir := range []string{m.Upper, m.Work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("prepare workspace: %w", err)
		}
	}
	if err := writeFiles(m.Upper, files); err != nil {
		return err
	}
	return giveAway(m.Upper, o.UID, o.GID)
}

// makeCopy copies a checkout for a run that gets no overlay, and drops the hold on
// the checkout: the copy needs it no more.
func (c *Cache) makeCopy(ctx context.Context, entry, dst string, files map[string]string, o PrepareOptions) (string, error) {
	method, err := copyTree(ctx, entry, dst, owner{uid: o.UID, gid: o.GID})
	if err != nil {
		return "", fmt.Errorf("copy checkout: %w", err)
	}
	if err := writeFiles(dst, files); err != nil {
		return "", err
	}
	if err := giveAway(filepath.Join(dst, ".git"), o.UID, o.GID); err != nil {
		return "", err
	}
	return method, c.unmark(entry, o)
}

// objectMounts binds object directories read-only, and an empty file over each
// one's own list of alternates: all of them are here already, and git would
// complain about paths that the sandbox does not have.
func objectMounts(objects []string, o PrepareOptions) (dirs, masks []sandbox.Mount, err error) {
	empty := filepath.Join(o.WorkDir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return nil, nil, fmt.Errorf("prepare workspace: %w", err)
	}
	for i, dir := range objects {
		target := wire.ObjectsDir + "/" + strconv.Itoa(o.N*100+i)
		dirs = append(dirs, sandbox.Mount{Kind: sandbox.MountBind, Source: dir, Target: target, ReadOnly: true})
		if _, err := os.Stat(filepath.Join(dir, "info", "alternates")); err == nil {
			masks = append(masks, sandbox.Mount{Kind: sandbox.MountBind, Source: empty, Target: target + "/info/alternates", ReadOnly: true})
		}
	}
	return dirs, masks, nil
}
