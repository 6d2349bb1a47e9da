package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/task"
)

// Wanted is what a client asks for, in ids of objects.
type Wanted struct {
	Wants   []string
	Haves   []string // what it has, with all that leads there
	Shallow []string // commits of its own without their parents
	// Deepen: more history is asked for, in all Depth commits; 0 is another measure.
	Deepen bool
	Depth  int
}

// RefreshObjects fetches what a client wants and our mirror of r lacks: objects that no
// branch shows, history that was cut off, and files that were left out.
func (c *Cache) RefreshObjects(ctx context.Context, r task.Repo, want Wanted) error {
	if err := c.git.ready(ctx); err != nil {
		return err
	}
	l, ok := c.access.listed(r.URL)
	if !ok { // of a host that is no more
		var err error
		if l, err = c.askAll(ctx, r.URL); err != nil {
			return err
		}
	}
	return c.onMirror(ctx, r, l.heads, func(w *mirrorWork) error { return w.provide(ctx, want) })
}

func (w *mirrorWork) provide(ctx context.Context, want Wanted) error {
	kinds, err := w.kinds(ctx, slices.Concat(want.Wants, want.Haves))
	if err != nil {
		return err
	}
	if missing := lacking(want.Wants, kinds); len(missing) > 0 {
		args := []string{"fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--stdin", "origin"}
		if err := w.run(ctx, w.dir, strings.Join(missing, "\n")+"\n", args); err != nil {
			return err
		}
		if kinds, err = w.kinds(ctx, slices.Concat(want.Wants, want.Haves)); err != nil {
			return err
		}
	}
	var revs []string
	for _, oid := range want.Wants {
		if kinds[oid] == "commit" || kinds[oid] == "tag" {
			revs = append(revs, oid)
		}
	}
	var nots []string
	for _, oid := range want.Haves {
		if !want.Deepen && kinds[oid] == "commit" {
			nots = append(nots, "^"+oid)
		}
	}
	if len(revs) == 0 {
		return nil
	}
	cut, err := w.cutsOff(ctx, want, append(slices.Clone(revs), nots...))
	if err != nil {
		return err
	}
	if cut {
		if err := w.unshallow(ctx); err != nil {
			return err
		}
	}
	return w.completeFor(ctx, want, append(revs, nots...))
}

// kinds are the types of those objects that the mirror has.
func (w *mirrorWork) kinds(ctx context.Context, oids []string) (map[string]string, error) {
	kinds := map[string]string{}
	oids, err := w.present(ctx, oids)
	if len(oids) == 0 || err != nil {
		return kinds, err
	}
	out, err := w.git.text(ctx, call{
		gitDir: w.dir, args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"},
		in: strings.NewReader(strings.Join(oids, "\n") + "\n"), env: []string{noNetwork},
	})
	if err != nil {
		return nil, fmt.Errorf("look for objects: %w", err)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if oid, kind, _ := strings.Cut(line, " "); kind != "missing" {
			kinds[oid] = kind
		}
	}
	return kinds, nil
}

// present are those objects that the mirror has. Of a mirror that leaves things out git's
// plainer ways to ask would fetch what is missing, one by one, or fail.
func (w *mirrorWork) present(ctx context.Context, oids []string) ([]string, error) {
	promisor, err := w.promisor(ctx)
	if err != nil || !promisor || len(oids) == 0 {
		return oids, err
	}
	out, err := w.git.text(ctx, call{
		gitDir: w.dir, in: strings.NewReader(strings.Join(oids, "\n") + "\n"),
		args: []string{"rev-list", "--no-walk", "--objects", "--no-object-names", "--filter=tree:0", "--missing=print", "--ignore-missing", "--stdin"},
	})
	if err != nil {
		return nil, fmt.Errorf("look for objects: %w", err)
	}
	return strings.Fields(out), nil
}

// promisor reports whether the mirror leaves something to its server.
func (w *mirrorWork) promisor(ctx context.Context) (bool, error) {
	value, err := w.get(ctx, "remote.origin.promisor")
	return value == "true", err
}

func lacking(oids []string, kinds map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(oids), func(oid string) bool { return kinds[oid] != "" })
}

// cutsOff reports whether the client would be given a history that ends where its own
// does not: git refuses that where it did not ask for it.
func (w *mirrorWork) cutsOff(ctx context.Context, want Wanted, revs []string) (bool, error) {
	ends, err := os.ReadFile(filepath.Join(w.dir, "shallow"))
	if err != nil {
		return false, nil //nolint:nilerr // it is whole
	}
	if want.Deepen {
		return want.Depth != 1, nil
	}
	out, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"rev-list", "--stdin"}, in: strings.NewReader(strings.Join(revs, "\n") + "\n")})
	if err != nil {
		return false, fmt.Errorf("look at history: %w", err)
	}
	for oid := range strings.SplitSeq(out, "\n") {
		if oid != "" && strings.Contains(string(ends), oid) && !slices.Contains(want.Shallow, oid) {
			return true, nil
		}
	}
	return false, nil
}

// unshallow fetches all history.
func (w *mirrorWork) unshallow(ctx context.Context) error {
	w.all = true
	if err := w.fetch(ctx, w.dir); err != nil {
		return err
	}
	return w.set(ctx, w.dir, historyKey, allHistory)
}

// completeFor fetches the files that the client lacks too.
func (w *mirrorWork) completeFor(ctx context.Context, want Wanted, revs []string) error {
	promisor, err := w.promisor(ctx)
	if err != nil || !promisor {
		return err
	}
	args := []string{"rev-list", "--objects", "--missing=print", "--stdin"}
	if want.Depth == 1 {
		args = append(args, "--no-walk")
	}
	return w.fetchMissing(ctx, call{gitDir: w.dir, args: args, in: strings.NewReader(strings.Join(revs, "\n") + "\n")})
}
