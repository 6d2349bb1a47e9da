package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const opDesk = "repo.Desk"

// Desk is a fresh bare repository of ours in which what an agent wants published meets
// what the server has. It borrows objects from what the run's repository was made of,
// never from what a sandbox can write, and is gone when it is closed. Nothing of a Desk
// may be used by two goroutines at a time.
type Desk struct {
	c       *Cache
	p       Prepared
	dir     string
	address string
	shallow []byte
	release func()

	known  []string // commits that are here with all that hangs on them
	server []string // those of them that the server has
}

// Desk makes a desk for a repository of a run that is on GitHub. There is one for each
// repository of a run at a time; one that a killed process left is replaced. Close it.
func (c *Cache) Desk(ctx context.Context, p Prepared) (*Desk, error) {
	owner, name, ok := c.OnGitHub(p.Repo)
	if !ok || !p.Run.Valid() {
		return nil, errs.New(opDesk, errs.Conflict, "", "the repository %s/%s has no origin on GitHub", p.Repo.Org, p.Repo.Name)
	}
	if err := c.git.ready(ctx); err != nil {
		return nil, err
	}
	d := &Desk{
		c: c, p: p, address: c.access.address(owner, name), release: func() {},
		dir: filepath.Join(c.dir, "repos", string(p.Run), strconv.Itoa(p.N)+"-desk.git"),
	}
	if err := d.make(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// make lays the desk out.
func (d *Desk) make(ctx context.Context) error {
	g := gitDir{path: d.dir, format: "sha1"}
	if len(d.p.Base) == 64 {
		g.format = "sha256"
	}
	base := d.p.Repo.Commit
	if d.p.Method == methodMount {
		// The objects of a mounted tree are the sandbox's to write.
		m, release, err := d.c.mirror(ctx, task.Repo{Source: task.RepoRemote, Org: d.p.Repo.Org, Name: d.p.Repo.Name, URL: d.address})
		if err != nil {
			return err
		}
		d.release, base = release, m.start.commit
		g.objects, g.shallow = m.src.objects, m.src.shallowFile()
	} else {
		bare := d.c.BareDir(d.p.Run, d.p.N)
		g.objects = alternates(filepath.Join(bare, "objects"))
		g.shallow, _ = os.ReadFile(filepath.Join(bare, "shallow")) // there may be none
	}
	err := RemoveAll(d.dir)
	if err == nil {
		err = g.make()
	}
	d.release() // from here on the desk tells that the mirror is borrowed from
	if err == nil {
		d.shallow = g.shallow
		err = d.c.setRef(ctx, d.dir, "refs/insights/base", base)
	}
	d.known = append(d.known, base)
	if d.p.Repo.Source == task.RepoRemote || d.p.Method == methodMount {
		d.server = append(d.server, base)
	}
	return err
}

// learn notes a commit that is here and on the server.
func (d *Desk) learn(oid string) {
	d.known, d.server = append(d.known, oid), append(d.server, oid)
}

// Close removes the desk.
func (d *Desk) Close() error { return RemoveAll(d.dir) }

// Dir is the path of the bare repository.
func (d *Desk) Dir() string { return d.dir }

// Remote is what a server has.
type Remote struct {
	Default string            // the default branch; empty: there is none
	Heads   map[string]string // the commits of all branches
}

// maxHeads bounds how many branches of a server are looked at.
const maxHeads = 50_000

// Fetch asks the server about its branches, and brings the default one and those that are
// named to the desk, as far as they are there.
func (d *Desk) Fetch(ctx context.Context, branches ...string) (Remote, error) {
	for _, b := range branches {
		if !validBranch(b) {
			return Remote{}, errs.New(opDesk, errs.Usage, "give the name of a branch, without refs/heads/", "%q is no name of a branch", b)
		}
	}
	r, err := d.heads(ctx)
	if err != nil {
		return r, err
	}
	var specs []string
	for _, b := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(branches), r.Default)))) {
		if r.Heads[b] != "" {
			specs = append(specs, "+refs/heads/"+b+":refs/heads/"+b)
		}
	}
	if len(specs) == 0 {
		return r, nil
	}
	if err := d.fetch(ctx, specs...); err != nil {
		return r, err
	}
	for _, spec := range specs {
		_, b, _ := strings.Cut(spec, ":refs/heads/")
		// It may have moved since.
		if r.Heads[b], err = d.text(ctx, "rev-parse", "--verify", "refs/heads/"+b); err != nil {
			return r, fmt.Errorf("read what was fetched: %w", err)
		}
		d.learn(r.Heads[b])
	}
	if d.p.Repo.Source == task.RepoLocal && d.p.Method != methodMount {
		// A repository on this machine knows more branches.
		if err := d.recognize(ctx, r.Heads); err != nil {
			return r, err
		}
	}
	return r, d.fetchBase(ctx)
}

// recognize learns which of the server's branches are here as they are there.
func (d *Desk) recognize(ctx context.Context, heads map[string]string) error {
	var ask strings.Builder
	for _, oid := range heads {
		ask.WriteString(oid + "\n")
	}
	out := limited{left: maxAnswer}
	err := d.c.git.run(ctx, call{gitDir: d.dir, in: strings.NewReader(ask.String()), out: &out, args: []string{"cat-file", "--batch-check=%(objecttype) %(objectname)"}})
	if err != nil {
		return fmt.Errorf("look for what is here: %w", err)
	}
	for line := range strings.SplitSeq(out.buf.String(), "\n") {
		if oid, ok := strings.CutPrefix(line, "commit "); ok {
			d.server = append(d.server, oid)
		}
	}
	return nil
}

func (d *Desk) heads(ctx context.Context) (Remote, error) {
	var out string
	_, err := d.c.access.reach(ctx, d.address, func(s server) error {
		list := s.call("ls-remote", "--symref", "--", s.url, "HEAD", "refs/heads/*")
		list.bound = askBound
		var err error
		out, err = d.c.git.text(ctx, list)
		return err
	})
	r := Remote{Default: readHeads(out, "").def, Heads: map[string]string{}}
	if err != nil {
		return r, err
	}
	for line := range strings.SplitSeq(out, "\n") {
		oid, ref, _ := strings.Cut(line, "\t")
		branch, head := strings.CutPrefix(ref, "refs/heads/")
		if head && isObjectID(oid) && validBranch(branch) && len(r.Heads) < maxHeads {
			r.Heads[branch] = oid
		}
	}
	return r, nil
}

// fetchBase brings the commit that a mounted tree was at, which the newest commits of a
// mirror may not come down to. The server need not have it.
func (d *Desk) fetchBase(ctx context.Context) error {
	if d.p.Method != methodMount {
		return nil
	}
	began := d.p.Repo.Commit
	if !d.Has(ctx, began) {
		err := d.fetch(ctx, "--depth="+strconv.Itoa(recent), began)
		if errors.Is(err, errUnknown) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.learn(began)
	d.shallow, _ = os.ReadFile(filepath.Join(d.dir, "shallow")) // it has come to be, or is longer
	return nil
}

// fetch fetches what is named: options and refspecs.
func (d *Desk) fetch(ctx context.Context, what ...string) error {
	var options, specs []string
	for _, w := range what {
		if strings.HasPrefix(w, "-") {
			options = append(options, w)
			continue
		}
		specs = append(specs, w)
	}
	_, err := d.c.access.reach(ctx, d.address, func(s server) error {
		args := append([]string{"fetch", "--progress", "--no-tags", "--no-write-fetch-head"}, options...)
		fetch := s.call(append(append(args, "--", s.url), specs...)...)
		fetch.gitDir, fetch.bound, fetch.stall = d.dir, longBound, d.c.stall
		err := d.c.git.run(ctx, fetch)
		if says := stderrOf(err); strings.Contains(says, "not our ref") || strings.Contains(says, "unadvertised object") {
			return &ourTrouble{errUnknown} // another key would not help
		}
		return err
	})
	return err
}

// errUnknown is a commit that the server does not have.
var errUnknown = errors.New("the server has no such commit")

// Take brings objects of a directory of the sandbox to the desk, with everything that
// hangs on them. Git checks each of them, and that none is missing.
func (d *Desk) Take(ctx context.Context, in Execer, dir string, oids ...string) error {
	for _, oid := range oids {
		if !isObjectID(oid) {
			return errs.New(opDesk, errs.Internal, "", "%q is not the name of an object", clip(oid))
		}
	}
	from := newInside(in, dir)
	ours, err := from.has(ctx, slices.Compact(slices.Sorted(slices.Values(d.known))))
	if err != nil {
		return fmt.Errorf("look at the repository in the sandbox: %w", err)
	}
	var revs strings.Builder
	// What lies behind where our history ends is not here, even where it is there.
	for line := range strings.FieldsSeq(string(d.shallow)) {
		revs.WriteString("--shallow " + line + "\n")
	}
	revs.WriteString(strings.Join(oids, "\n") + "\n--not\n" + strings.Join(ours, "\n") + "\n")
	if err := d.c.receivePack(ctx, from, strings.TrimSuffix(revs.String(), "\n\n")+"\n", d.dir); err != nil {
		return errs.New(opDesk, errs.Conflict, "", "take what is to be published out of the sandbox: %w", err)
	}
	err = d.c.git.run(ctx, call{gitDir: d.dir, bound: captureBound, args: append(
		append([]string{"rev-list", "--objects", "--quiet"}, oids...), append([]string{"--not"}, d.known...)...)})
	if err != nil {
		return errs.New(opDesk, errs.Conflict, "", "the sandbox did not send what it named: %w", err)
	}
	return nil
}
