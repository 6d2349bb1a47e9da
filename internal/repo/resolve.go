package repo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// ResolveOptions say what relative paths are relative to.
type ResolveOptions struct {
	WorkDir string // absolute; what ./ and ../ mean
	Home    string // absolute; what ~ means
}

// Resolved is what an address names.
type Resolved struct {
	Repo    task.Repo
	GitHub  bool     // it is on GitHub, or its origin is
	Notices []string // for the user, one line each
}

// Resolve looks up what the address r names, as Parse and the flags made it, and
// fills the rest in: the top of a working tree, organisation and name, the branch
// and, for a path, the commit that a run begins with. For an address on a server it
// asks the server, within 30 seconds and without ever prompting. Errors tell why a
// repository cannot be used: Usage, NotFound, Auth or Unavailable.
func (c *Cache) Resolve(ctx context.Context, r task.Repo, o ResolveOptions) (Resolved, error) {
	if r.Branch != "" && !validBranch(r.Branch) {
		return Resolved{}, errs.New("repo.Resolve", errs.Usage, "give the name of a branch", "%q is not a branch name", r.Branch)
	}
	if r.Source == task.RepoRemote {
		return c.resolveRemote(ctx, r)
	}
	dir, err := absolute(r.Path, o)
	if err != nil {
		return Resolved{}, err
	}
	s, err := c.open(ctx, dir)
	if err != nil {
		return Resolved{}, err
	}
	return c.resolveLocal(ctx, s, r)
}

func absolute(p string, o ResolveOptions) (string, error) {
	if p == "~" || strings.HasPrefix(p, "~/") {
		if o.Home == "" {
			return "", errs.New("repo.Resolve", errs.Usage, "write the path out", "%q needs a home directory, and there is none", p)
		}
		p = filepath.Join(o.Home, strings.TrimPrefix(p, "~"))
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(o.WorkDir, p)
	}
	if !filepath.IsAbs(p) {
		return "", errs.New("repo.Resolve", errs.Usage, "write the path out", "%q is relative to nothing", p)
	}
	return filepath.Clean(p), nil
}

func (c *Cache) resolveLocal(ctx context.Context, s *source, r task.Repo) (Resolved, error) {
	out := Resolved{Repo: r}
	out.Repo.Path = s.top
	if s.top == "" {
		out.Repo.Path = s.commonDir
	}
	out.Repo.Org, out.Repo.Name = localOrg, nameOfPath(out.Repo.Path)
	origin := s.config["remote.origin.url"]
	if org, name, ok := fromOrigin(origin); ok {
		out.Repo.Org, out.Repo.Name, out.GitHub = org, name, true
	}
	if owner, name, ok := c.access.onHub(origin); ok {
		out.Repo.Org, out.Repo.Name, out.GitHub = slug(owner), slug(name), true
		out.Repo.URL = c.access.address(owner, name)
	}
	st, err := c.start(ctx, s, r.Branch)
	if err != nil {
		return out, err
	}
	out.Repo.Branch, out.Repo.Commit = st.branch, st.commit
	out.Notices = append(out.Notices, st.notices...)
	if s.partial() {
		out.Notices = append(out.Notices, "the repository is a partial clone: objects that were not fetched are not in the sandbox")
	}
	return out, c.checkTree(ctx, s, st, &out)
}

// checkTree looks at the working tree: what is refused about it, and whether work
// in it stays behind.
func (c *Cache) checkTree(ctx context.Context, s *source, st start, out *Resolved) error {
	r := out.Repo
	if s.top == "" {
		if r.Mount || r.Uncommitted {
			return errs.New("repo.Resolve", errs.Usage, "leave out --mount and --uncommitted", "%q is a bare repository without a working tree", r.Path)
		}
		return nil
	}
	if (r.Mount || r.Uncommitted) && !st.current {
		return errs.New("repo.Resolve", errs.Usage, "leave out --branch, or check the branch out first",
			"the working tree of %q is not on branch %q", r.Path, st.branch)
	}
	if r.Mount {
		if err := mountable(s); err != nil {
			return err
		}
	}
	n, err := c.dirty(ctx, s)
	if err != nil || n == 0 {
		return err
	}
	work := fmt.Sprintf("%d files of %s have uncommitted changes", n, r.Path)
	if n == 1 {
		work = "1 file of " + r.Path + " has uncommitted changes"
	}
	switch {
	case r.Mount:
		out.Notices = append(out.Notices, work+", and the sandbox may overwrite them: the tree is mounted read-write")
	case !r.Uncommitted:
		out.Notices = append(out.Notices, work+" that the sandbox does not see; --uncommitted brings them along")
	}
	return nil
}

// start is where a run begins.
type start struct {
	branch  string // empty: detached
	commit  string
	current bool   // it is what the working tree is on
	target  string // see Prepared.Target
	notices []string
}

// start finds the branch and commit that a run begins with. A branch that exists
// nowhere begins at HEAD.
func (c *Cache) start(ctx context.Context, s *source, want string) (start, error) {
	branch, commit, err := c.head(ctx, s)
	if err != nil {
		return start{}, err
	}
	if want == "" || want == branch {
		if commit == "" {
			return start{}, errs.New("repo.Resolve", errs.Conflict, "make a first commit: git commit --allow-empty -m init",
				"the repository has no commit yet")
		}
		return start{branch: branch, commit: commit, current: true}, nil
	}
	for _, ref := range []string{"refs/heads/" + want, "refs/remotes/origin/" + want} {
		found, err := c.commit(ctx, s, ref)
		if err != nil {
			return start{}, err
		}
		if found != "" {
			return start{branch: want, commit: found}, nil
		}
	}
	if commit == "" {
		return start{}, errs.New("repo.Resolve", errs.NotFound, "name a branch that exists",
			"the repository has neither branch %q nor a commit on its HEAD", want)
	}
	return start{branch: want, commit: commit, current: true, notices: []string{
		fmt.Sprintf("branch %q does not exist: it begins at %s", want, short(commit)),
	}}, nil
}

func short(oid string) string {
	if len(oid) > 12 {
		return oid[:12]
	}
	return oid
}
