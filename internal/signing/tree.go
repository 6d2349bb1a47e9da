package signing

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

// treeChunk is how many entries one request has: with more GitHub runs into its own
// time limit.
const treeChunk = 100

// emptyTree is in every repository, and no request can make it.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// makeTree makes a tree on GitHub that has the hash of ours. GitHub has the tree base
// and all contents.
func (j *job) makeTree(ctx context.Context, base, want string, all []change) error {
	if len(all) == 0 || want == emptyTree {
		return nil
	}
	// Where a file takes the place of a folder GitHub does not say what comes first.
	if !clash(all) && base != emptyTree {
		got, err := j.overlay(ctx, base, all)
		if err == nil && got == want {
			return nil
		}
		if err != nil && statusOf(err) != 0 && statusOf(err) != 422 || ctx.Err() != nil {
			return err
		}
	}
	return j.exact(ctx, base, want, "")
}

// overlay puts the changes over a tree, in chunks. What is added comes first: no tree
// between is empty.
func (j *job) overlay(ctx context.Context, base string, all []change) (string, error) {
	var added, gone []*github.TreeEntry
	for _, c := range all {
		if c.deleted() {
			gone = append(gone, &github.TreeEntry{Path: github.String(c.path), Mode: github.String(c.was), Type: github.String(kind(c.was))})
			continue
		}
		added = append(added, entry(c.path, c.mode, c.oid))
	}
	return j.post100(ctx, base, append(added, gone...))
}

func entry(path, mode, oid string) *github.TreeEntry {
	return &github.TreeEntry{Path: github.String(path), Mode: github.String(mode), Type: github.String(kind(mode)), SHA: github.String(oid)}
}

// post100 sends entries in chunks, each over the tree of the one before.
func (j *job) post100(ctx context.Context, base string, entries []*github.TreeEntry) (string, error) {
	for chunk := range slices.Chunk(entries, treeChunk) {
		got, resp, err := j.c.rest.Git.CreateTree(ctx, j.repo.Owner, j.repo.Name, base, chunk)
		if err != nil {
			return "", explain(ctx, j.op, "make a tree", headerOf(resp), err)
		}
		base = got.GetSHA()
	}
	return base, nil
}

// exact makes the folders of a tree that differ from base, the innermost first, each
// from the whole list of what is in it.
func (j *job) exact(ctx context.Context, base, want, dir string) error {
	was, err := j.list(ctx, base)
	if err != nil {
		return err
	}
	now, err := j.list(ctx, want)
	if err != nil {
		return err
	}
	var entries []*github.TreeEntry
	for _, e := range now {
		old := emptyTree
		if i := slices.IndexFunc(was, func(o change) bool { return o.path == e.path && o.mode == modeTree }); i >= 0 {
			old = was[i].oid
		}
		if e.mode == modeTree && e.oid != old {
			if err := j.exact(ctx, old, e.oid, dir+e.path+"/"); err != nil {
				return err
			}
		}
		entries = append(entries, entry(e.path, e.mode, e.oid))
	}
	got, err := j.post100(ctx, "", entries)
	if err == nil && got != want {
		err = errs.New(j.op, errs.Internal, "", "GitHub made the tree %s of /%s, which is %s here", short(got), dir, short(want))
	}
	return err
}

// list is what stands in one tree, without what is below.
func (j *job) list(ctx context.Context, tree string) ([]change, error) {
	if tree == emptyTree {
		return nil, nil
	}
	var out bytes.Buffer
	if err := j.c.git.run(ctx, call{bare: j.bare, out: &out, args: []string{"ls-tree", "-z", tree}}); err != nil {
		return nil, fmt.Errorf("read a tree: %w", err)
	}
	var all []change
	for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		about, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(about)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("read a tree: git says %q", line)
		}
		all = append(all, change{path: name, mode: f[0], oid: f[2]})
	}
	return all, nil
}
