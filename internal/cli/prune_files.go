package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// keepChanges is how long the changes and the artifacts of a run are kept after its end.
const keepChanges = 30 * 24 * time.Hour

// ids lists the entries of a directory of the state directory that are ids of runs.
func (p *pruning) ids(sub string) ([]fs.DirEntry, error) {
	all, err := os.ReadDir(filepath.Join(p.dir, sub))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !task.ID(e.Name()).Valid() }), err
}

// findDirectories looks for directories of runs. One goes only after the sandbox
// that works in it, so that of a provider that does not answer it stays.
func (p *pruning) findDirectories(ctx context.Context) error {
	entries, err := p.ids("run")
	if err != nil {
		return err
	}
	for _, e := range entries {
		run := task.ID(e.Name())
		why, _, ok, err := p.verdict(ctx, run, "")
		if err != nil {
			return err
		}
		rec, err := p.store.Run(ctx, run)
		if !ok || p.spare[run] || err == nil && p.providers[placeOf(rec.Spec)] == nil {
			continue
		}
		box := slices.IndexFunc(p.items, func(l *leftover) bool { return l.Kind == kindSandbox && l.Run == run })
		p.add(leftover{
			Kind: kindDirectory, ID: filepath.Join(p.dir, "run", e.Name()), Run: run, Why: why,
			Kept: box >= 0 && p.items[box].Kept,
			remove: func(context.Context) error {
				if box >= 0 && !p.items[box].Removed {
					return errs.New("cli.prune", errs.Incomplete, "", "its sandbox is still there")
				}
				return repo.RemoveAll(filepath.Join(p.dir, "run", e.Name()))
			},
		})
	}
	return nil
}

// findChanges looks for the changes of runs that ended long ago.
func (p *pruning) findChanges(ctx context.Context) error {
	entries, err := p.ids("repos")
	if err != nil {
		return err
	}
	for _, e := range entries {
		run := task.ID(e.Name())
		why, _, ok, err := p.verdict(ctx, run, "")
		if err != nil {
			return err
		}
		if !ok || time.Since(p.ended(ctx, run, e)) < keepChanges {
			continue
		}
		p.add(leftover{
			Kind: kindChanges, ID: filepath.Join(p.dir, "repos", e.Name()), Run: run, Why: why,
			remove: func(ctx context.Context) error { return p.repos.Remove(ctx, run) },
		})
	}
	return nil
}

// findArtifacts looks for what the agents of runs that ended long ago have left.
func (p *pruning) findArtifacts(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(p.dir, artifacts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		run := task.ID(strings.TrimPrefix(e.Name(), artifactsOfRun))
		if !run.Valid() {
			continue
		}
		why, _, ok, err := p.verdict(ctx, run, "")
		if err != nil {
			return err
		}
		if !ok || time.Since(p.ended(ctx, run, e)) < keepChanges {
			continue
		}
		dir := artifactsDir(p.dir, run)
		p.add(leftover{
			Kind: kindArtifacts, ID: dir, Run: run, Why: why,
			remove: func(context.Context) error { return os.RemoveAll(dir) },
		})
	}
	return err
}

// ended is when a run has ended; of one that is not recorded, when what it left was
// written. What cannot be told has just happened.
func (p *pruning) ended(ctx context.Context, run task.ID, e fs.DirEntry) time.Time {
	rec, err := p.store.Run(ctx, run)
	if err == nil {
		return rec.Finished
	}
	info, infoErr := e.Info()
	if !errors.Is(err, journal.ErrNotFound) || infoErr != nil {
		return time.Now()
	}
	return info.ModTime()
}

// findOwners looks for the files of processes that are dead and own nothing more.
func (p *pruning) findOwners(ctx context.Context) error {
	all, err := owner.List(p.dir)
	if err != nil {
		return err
	}
	for _, st := range all {
		if st.State != owner.StateDead || !p.ownsNothing(ctx, st.ID) {
			continue
		}
		p.add(leftover{
			Kind: kindOwner, ID: st.ID, Why: fmt.Sprintf("process %d is dead", st.PID),
			remove: func(ctx context.Context) error {
				_, err := owner.Sweep(p.dir, func(id string) bool { return id == st.ID && p.ownsNothing(ctx, id) })
				return err
			},
		})
	}
	return nil
}

func (p *pruning) ownsNothing(ctx context.Context, id string) bool {
	recs, err := p.store.Runs(ctx, journal.Filter{Live: true, Owner: id})
	return err == nil && len(recs) == 0
}

// findCaches looks for cached checkouts and mirrors; those in use stay when they are
// removed.
func (p *pruning) findCaches() {
	dir := filepath.Join(p.dir, "cache")
	var what []string
	for _, c := range []struct{ dir, name string }{{"checkout", "checkout"}, {"git", "mirror"}} {
		entries, _ := os.ReadDir(filepath.Join(dir, c.dir)) // there may be none
		if n := len(slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "locks" })); n > 0 {
			what = append(what, count(n, c.name))
		}
	}
	if len(what) == 0 {
		return
	}
	p.add(leftover{
		Kind: kindCache, ID: dir, Why: strings.Join(what, " and ") + ", as far as no run uses them",
		remove: func(ctx context.Context) error {
			return repo.New(repo.Options{Dir: p.dir, MaxCheckouts: 1, MaxMirrors: 1}).Sweep(ctx, func(run task.ID) bool {
				rec, err := p.store.Run(ctx, run)
				if err != nil {
					return !errors.Is(err, journal.ErrNotFound)
				}
				return !rec.State.Terminal() || kept(rec)
			})
		},
	})
}
