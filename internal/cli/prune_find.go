package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/task"
)

// The kinds of leftover beside those of the engine.
const (
	kindSandbox   = "sandbox"
	kindDirectory = "directory"
	kindChanges   = "changes"
	kindArtifacts = "artifacts"
	kindOwner     = "owner"
	kindCache     = "cache"
)

// leftover is one thing that no live run owns.
type leftover struct {
	Kind     string  `json:"kind"` // sandbox, volume, network, directory, changes, artifacts, owner, cache
	ID       string  `json:"id"`
	Run      task.ID `json:"run,omitempty"`
	Provider string  `json:"provider,omitempty"`
	Why      string  `json:"why"`
	Kept     bool    `json:"kept,omitempty"` // asked for with --keep
	Removed  bool    `json:"removed"`
	Error    string  `json:"error,omitempty"`

	remove func(ctx context.Context) error
}

// pruning is one search for what was left behind. Everything is looked at first and
// the run's record afterwards: a run is recorded before it has anything, so what
// belongs to a run that has just begun is never taken for nobody's.
type pruning struct {
	*state
	me        owner.Info
	domain    string
	providers map[place]sandbox.Provider

	items []*leftover
	spare map[task.ID]bool // runs of which something must stay
}

// lender is a provider that makes more than sandboxes.
type lender interface {
	Leftovers(ctx context.Context, labels map[string]string) ([]docker.Leftover, error)
	Remove(ctx context.Context, l docker.Leftover) error
}

// find looks for everything, in the order in which it can be removed.
func (p *pruning) find(ctx context.Context, caches bool) error {
	p.spare = map[task.ID]bool{}
	for at, provider := range p.providers {
		if err := p.findSandboxes(ctx, at.provider, provider); err != nil {
			return fmt.Errorf("provider %s: %w", at.provider, err)
		}
	}
	slices.SortFunc(p.items, func(a, b *leftover) int { return strings.Compare(a.Provider+a.ID, b.Provider+b.ID) })
	for _, f := range []func(context.Context) error{p.findAllLent, p.findDirectories, p.findChanges, p.findArtifacts, p.findOwners} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	if caches {
		p.findCaches()
	}
	return nil
}

// add notes a thing, once: two names may mean the same engine.
func (p *pruning) add(l leftover) {
	if !p.has(l) {
		p.items = append(p.items, &l)
	}
}

func (p *pruning) has(item leftover) bool {
	return slices.ContainsFunc(p.items, func(l *leftover) bool { return l.Kind == item.Kind && l.ID == item.ID })
}

// verdict says whether what carries a run's label may go: not if the run is live,
// its owner is on another machine or, for a run that is not recorded, still alive.
func (p *pruning) verdict(ctx context.Context, run task.ID, label string) (why string, keep, ok bool, err error) {
	rec, err := p.store.Run(ctx, run)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		if label != "" && !p.dead(label) {
			return "", false, false, nil
		}
		return "of a run that is not recorded", false, true, nil
	case err != nil:
		return "", false, false, err
	case !rec.State.Terminal():
		return "", false, false, nil
	}
	if rec.Owner != "" {
		st, err := owner.Lookup(p.dir, rec.Owner)
		if err != nil || st.State == owner.StateForeign {
			return "", false, false, nil //nolint:nilerr // what cannot be told is left alone
		}
	}
	if kept(rec) {
		return "kept by run " + run.Short(), true, true, nil
	}
	return "of run " + run.Short() + ", which is over", false, true, nil
}

// dead reports whether the owner that a label names is a process of this machine
// that has ended. Nothing is known of processes of other machines, and of other
// containers of this one.
func (p *pruning) dead(label string) bool {
	parts := strings.Split(label, "/")
	if len(parts) != 4 || parts[0] != p.me.Host {
		return false
	}
	if parts[1] != p.me.Boot {
		return true // before the last start of the machine
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil || pid <= 0 {
		return false
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		// Linux: of a process that has ended and that its parent does not ask about.
		if _, after, ok := strings.Cut(string(b), ") "); ok && strings.HasPrefix(after, "Z") {
			return true
		}
	}
	proc, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	defer func() { _ = proc.Release() }()
	err = proc.Signal(syscall.Signal(0))
	return err != nil && !errors.Is(err, fs.ErrPermission)
}

func (p *pruning) findSandboxes(ctx context.Context, name string, provider sandbox.Provider) error {
	found, err := provider.List(ctx, map[string]string{sandbox.LabelState: p.domain})
	if err != nil {
		return err
	}
	for _, info := range found {
		run := task.ID(info.Labels[sandbox.LabelRun])
		why, keep, ok, err := p.verdict(ctx, run, info.Labels[sandbox.LabelOwner])
		if err != nil {
			return err
		}
		if !ok {
			p.spare[run] = true
			continue
		}
		p.add(leftover{
			Kind: kindSandbox, ID: string(info.ID), Run: run, Provider: name, Why: why, Kept: keep,
			remove: func(ctx context.Context) error {
				box, err := provider.Open(ctx, info.ID)
				if errors.Is(err, sandbox.ErrNotFound) {
					return p.letGo(ctx, run)
				}
				if err != nil {
					return err
				}
				return errors.Join(box.Destroy(ctx), p.letGo(ctx, run))
			},
		})
	}
	return nil
}

// letGo drops what a run kept for the sake of its sandbox.
func (p *pruning) letGo(ctx context.Context, run task.ID) error {
	if !run.Valid() {
		return nil
	}
	return errors.Join(p.store.EraseSecrets(ctx, run), p.tokens.Revoke(ctx, run), p.repos.Release(ctx, run))
}

func (p *pruning) findAllLent(ctx context.Context) error {
	for at, provider := range p.providers {
		if l, ok := provider.(lender); ok {
			if err := p.findLent(ctx, at.provider, l); err != nil {
				return fmt.Errorf("provider %s: %w", at.provider, err)
			}
		}
	}
	return nil
}

// findLent looks for volumes of runs that have no sandbox, and for our network if
// nothing is in it and no run may be about to join it.
func (p *pruning) findLent(ctx context.Context, name string, l lender) error {
	found, err := l.Leftovers(ctx, map[string]string{sandbox.LabelState: p.domain})
	if err != nil && errs.KindOf(err) != errs.Conflict { // a network of our name that is another program's
		return err
	}
	live, err := p.store.Runs(ctx, journal.Filter{Live: true})
	if err != nil {
		return err
	}
	for _, left := range found {
		item := leftover{
			Kind: string(left.Kind), ID: left.Name, Run: task.ID(left.Run), Provider: name, Why: "nothing is in it",
			remove: func(ctx context.Context) error { return l.Remove(ctx, left) },
		}
		ok := len(live) == 0
		if left.Kind == docker.LeftoverVolume {
			item.Why, _, ok, err = p.verdict(ctx, item.Run, "")
		}
		if err != nil {
			return err
		}
		if ok {
			p.add(item)
		}
	}
	return nil
}
