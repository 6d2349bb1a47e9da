package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// listFresh is how long what a server told about its branches is believed.
	listFresh = 3 * time.Second
	// manyBranches is up to how many branches are fetched because somebody asked for all.
	// Of more, those that the mirror has or that are asked for by name.
	manyBranches = 50
	// serveBound bounds one answer to a client, who may be slow.
	serveBound = 15 * time.Minute
)

// listing is what a server told about its branches and tags, at a time.
type listing struct {
	heads
	refs map[string]string // full name -> object
	at   time.Time
}

// RefreshRefs brings the branches and tags of our mirror of r up to date, as far as a
// client asks for them: prefixes of full names, none for all. A mirror that is not there
// is made.
func (c *Cache) RefreshRefs(ctx context.Context, r task.Repo, prefixes []string) error {
	if err := c.git.ready(ctx); err != nil {
		return err
	}
	l, err := c.askAll(ctx, r.URL)
	if err != nil {
		return err
	}
	return c.onMirror(ctx, r, l.heads, func(w *mirrorWork) error { return w.follow(ctx, l, prefixes) })
}

// onMirror does something with the mirror of r while nobody else does.
func (c *Cache) onMirror(ctx context.Context, r task.Repo, h heads, do func(*mirrorWork) error) error {
	name := mirrorName(r.URL)
	unlock, err := c.lock(ctx, c.mirrorsDir(), name)
	if err != nil {
		return err
	}
	defer unlock()
	w := &mirrorWork{Cache: c, repo: r, heads: h, dir: filepath.Join(c.mirrorsDir(), name+".git")}
	if !w.usable(ctx) {
		if _, err := w.make(ctx); err != nil {
			return err
		}
	}
	removeLeftLocks(w.dir)
	if err := w.describe(ctx); err != nil {
		return err
	}
	if err := do(w); err != nil {
		return err
	}
	if err := touch(filepath.Join(w.dir, usedName)); err != nil {
		return fmt.Errorf("keep mirror: %w", err)
	}
	if w.grew {
		return c.makeMirrorRoom(ctx, w.dir)
	}
	return nil
}

func (w *mirrorWork) usable(ctx context.Context) bool {
	if _, err := os.Lstat(filepath.Join(w.dir, brokenName)); err == nil {
		return false
	}
	return w.git.run(ctx, call{gitDir: w.dir, args: []string{"rev-parse", "--git-dir"}}) == nil
}

// askAll asks a server about all of its branches and tags, unless it was asked just now.
func (c *Cache) askAll(ctx context.Context, address string) (listing, error) {
	if l, ok := c.access.listed(address); ok && time.Since(l.at) < listFresh {
		return l, nil
	}
	var out string
	from, err := c.access.reach(ctx, address, func(s server) error {
		ask := s.call("ls-remote", "--symref", "--", s.url, "HEAD", "refs/heads/*", "refs/tags/*")
		ask.bound = askBound
		var err error
		out, err = c.git.text(ctx, ask)
		return err
	})
	if err != nil {
		return listing{}, err
	}
	l := listing{heads: readHeads(out, ""), refs: map[string]string{}, at: time.Now()}
	l.from = from
	if l.format == "" {
		return l, errs.New("repo.RefreshRefs", errs.Conflict, "push a first commit to it", "repository %s has no commit yet", address)
	}
	for line := range strings.SplitSeq(out, "\n") {
		oid, name, _ := strings.Cut(line, "\t")
		if isObjectID(oid) && shown(name) {
			l.refs[name] = oid
		}
	}
	c.access.keepListing(address, l)
	return l, nil
}

// shown reports whether a ref is one that clients see.
func shown(name string) bool {
	branch, isBranch := strings.CutPrefix(name, "refs/heads/")
	tag, isTag := strings.CutPrefix(name, "refs/tags/")
	return isBranch && validBranch(branch) || isTag && validBranch(tag)
}

// follow fetches what is new of what is asked for, and forgets what is no more.
func (w *mirrorWork) follow(ctx context.Context, l listing, prefixes []string) error {
	have, err := w.ownRefs(ctx)
	if err != nil {
		return err
	}
	var gone strings.Builder
	for name := range have {
		if l.refs[name] == "" {
			gone.WriteString("delete " + name + "\n")
		}
	}
	if gone.Len() > 0 {
		forget := call{gitDir: w.dir, args: []string{"update-ref", "--stdin"}, in: strings.NewReader(gone.String())}
		if err := w.git.run(ctx, forget); err != nil {
			return fmt.Errorf("forget branches: %w", err)
		}
	}
	var specs strings.Builder
	for _, name := range l.asked(have, prefixes, w.all) {
		if have[name] != l.refs[name] {
			specs.WriteString("+" + name + ":" + name + "\n")
		}
	}
	if specs.Len() > 0 {
		// Nothing is left out: a client may lack what the mirror would.
		args := []string{"fetch", "--progress", "--no-write-fetch-head", "--force", "--no-filter", "--stdin", "origin"}
		if err := w.run(ctx, w.dir, specs.String(), args); err != nil {
			return err
		}
	}
	return w.pointHead(ctx)
}

// ownRefs are the branches and tags of the mirror.
func (w *mirrorWork) ownRefs(ctx context.Context) (map[string]string, error) {
	out, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"}})
	if err != nil {
		return nil, fmt.Errorf("list refs: %w", err)
	}
	have := map[string]string{}
	for line := range strings.SplitSeq(out, "\n") {
		if oid, name, ok := strings.Cut(line, " "); ok && isObjectID(oid) {
			have[name] = oid
		}
	}
	return have, nil
}

// asked are the refs that a client is shown.
func (l listing) asked(have map[string]string, prefixes []string, all bool) []string {
	var out, others []string
	for name := range l.refs {
		matches := len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		switch {
		case have[name] != "", slices.Contains(prefixes, name), all && matches:
			out = append(out, name)
		case matches && strings.HasPrefix(name, "refs/heads/"):
			others = append(others, name)
		}
	}
	if len(others) <= manyBranches {
		out = append(out, others...)
	}
	slices.Sort(out)
	return out
}

// pointHead makes the mirror's HEAD that of the server, for those who clone.
func (w *mirrorWork) pointHead(ctx context.Context) error {
	head := "ref: refs/heads/" + w.heads.def + "\n"
	if w.heads.def == "" || !validBranch(w.heads.def) {
		return nil
	}
	if now, err := os.ReadFile(filepath.Join(w.dir, "HEAD")); err == nil && string(now) == head {
		return nil
	}
	err := w.git.run(ctx, call{gitDir: w.dir, args: []string{"symbolic-ref", "HEAD", "refs/heads/" + w.heads.def}})
	if err != nil {
		return fmt.Errorf("keep mirror: %w", err)
	}
	return nil
}

// listed is what a server said last.
func (a *access) listed(address string) (listing, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ok := a.lists[address]
	return l, ok
}

func (a *access) keepListing(address string, l listing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists[address] = l
}

// Exchange is one exchange of git's smart protocol with a client that fetches.
type Exchange struct {
	Advertise bool // tell what there is, instead of answering In
	Version   int  // of the protocol
	In        io.Reader
	Out       io.Writer
}

// UploadPack answers a client from our mirror of r. It shows branches and tags, gives
// whatever they lead to, and asks nobody, unless there is no mirror yet.
func (c *Cache) UploadPack(ctx context.Context, r task.Repo, x Exchange) error {
	dir := filepath.Join(c.mirrorsDir(), mirrorName(r.URL)+".git")
	if _, err := os.Stat(dir); x.Advertise && errors.Is(err, fs.ErrNotExist) {
		if err := c.RefreshRefs(ctx, r, nil); err != nil {
			return err
		}
	}
	args := []string{
		"-c", "uploadpack.allowFilter=true", "-c", "uploadpack.allowAnySHA1InWant=true", "-c", "pack.threads=1",
		"-c", "transfer.hideRefs=refs", "-c", "transfer.hideRefs=!refs/heads", "-c", "transfer.hideRefs=!refs/tags",
		"upload-pack", "--strict", "--stateless-rpc",
	}
	if x.Advertise {
		args = append(args, "--advertise-refs")
	}
	serve := call{
		args: append(args, "--", dir),
		in:   x.In, out: x.Out, bound: serveBound, env: []string{noNetwork},
	}
	if x.Version > 0 {
		serve.env = append(serve.env, "GIT_PROTOCOL=version="+strconv.Itoa(x.Version))
	}
	if err := c.git.run(ctx, serve); err != nil {
		return fmt.Errorf("serve repository %s/%s: %w", r.Org, r.Name, err)
	}
	return nil
}

// noNetwork keeps git from asking a server for what a mirror has not: a git before 2.45
// has no other way.
const noNetwork = "GIT_ALLOW_PROTOCOL="
