package repo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// recent is how many commits of a branch a run sees unless it asks for all: what a
	// git log is read for, and a fraction of what a long history weighs.
	recent = 50
	// smallBlob is up to which size old versions of files come with the whole history.
	smallBlob = "blob:limit=128k"
)

// current reports whether the branches that the run wants are where the server has
// them.
func (w *mirrorWork) current(ctx context.Context) bool {
	for branch, commit := range w.wanted() {
		got, err := w.git.text(ctx, call{gitDir: w.dir, args: []string{"rev-parse", "-q", "--verify", "refs/heads/" + branch}})
		if err != nil || got != commit {
			return false
		}
	}
	return true
}

// wanted are the branches that a run sees of a mirror that has not all.
func (w *mirrorWork) wanted() map[string]string {
	out := map[string]string{}
	if w.heads.def != "" && w.heads.tip != "" {
		out[w.heads.def] = w.heads.tip
	}
	if w.heads.found() {
		out[w.heads.branch] = w.heads.commit
	}
	return out
}

// fetch brings all branches and tags with their history, or the newest commits of the
// branches that are wanted.
func (w *mirrorWork) fetch(ctx context.Context, dir string) error {
	args := []string{"fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--force"}
	if !w.all {
		args = append(args, "--depth="+strconv.Itoa(recent), "--", "origin")
		for branch := range w.wanted() {
			args = append(args, "+refs/heads/"+branch+":refs/heads/"+branch)
		}
		return w.run(ctx, dir, "", args)
	}
	args = append(args, "--prune")
	if _, err := os.Stat(filepath.Join(dir, "shallow")); err == nil {
		args = append(args, "--unshallow")
	}
	from := w.heads.from.url
	if !isFile(from) {
		args, from = append(args, "--filter="+smallBlob), "origin"
	}
	return w.run(ctx, dir, "", append(args, "--", from, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"))
}

// fetchPlain fetches from a server that can leave nothing out.
func (w *mirrorWork) fetchPlain(ctx context.Context, dir string) error {
	return w.run(ctx, dir, "", []string{
		"fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--force", "--prune", "--", w.heads.from.url,
		"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*",
	})
}

// run is a fetch that is told on its standard input what it wants beside its arguments.
func (w *mirrorWork) run(ctx context.Context, dir, in string, args []string) error {
	w.grew = true
	_, err := w.access.reach(ctx, w.heads.from.url, func(s server) error {
		fetch := s.call(args...)
		fetch.gitDir, fetch.bound, fetch.stall = dir, longBound, w.stall
		fetch.in = strings.NewReader(in)
		err := w.git.run(ctx, fetch)
		if damaged(err) {
			return &ourTrouble{err}
		}
		return err
	})
	return err
}

// ourTrouble is what git says about the mirror, not about the server.
type ourTrouble struct{ error }

// Unwrap gives the cause to errors.As.
func (e *ourTrouble) Unwrap() error { return e.error }

// complete fetches the files of the commit that the history came without.
func (w *mirrorWork) complete(ctx context.Context, s *source, st *start) error {
	if !s.partial() {
		return nil
	}
	return w.fetchMissing(ctx, call{gitDir: w.dir, args: []string{"rev-list", "--objects", "--missing=print", "--no-walk", st.commit}})
}

// fetchMissing fetches what a listing of objects finds missing.
func (w *mirrorWork) fetchMissing(ctx context.Context, list call) error {
	out, err := w.git.text(ctx, list)
	if err != nil {
		return fmt.Errorf("look for missing files: %w", err)
	}
	var missing strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		if oid, ok := strings.CutPrefix(line, "?"); ok && isObjectID(oid) {
			missing.WriteString(oid + "\n")
		}
	}
	if missing.Len() == 0 {
		return nil
	}
	return w.run(ctx, w.dir, missing.String(), []string{
		"-c", "fetch.negotiationAlgorithm=noop", "fetch", "--progress", "--no-tags", "--no-write-fetch-head",
		"--filter=blob:none", "--stdin", "origin",
	})
}

// removeLeftLocks removes what a killed git left in a mirror, whose lock is held: its
// own locks would stop the next one.
func removeLeftLocks(dir string) {
	for _, name := range []string{"shallow.lock", "packed-refs.lock", "config.lock", "HEAD.lock"} {
		_ = os.Remove(filepath.Join(dir, name)) // there is none
	}
	for _, refs := range []string{"refs/heads", "refs/tags"} {
		_ = filepath.WalkDir(filepath.Join(dir, refs), func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(p, ".lock") {
				_ = os.Remove(p) // git says so if it stays
			}
			return nil
		})
	}
	removePartialPacks(dir)
}
