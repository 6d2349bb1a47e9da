package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
	"github.com/Insights/insightscli/internal/task"
)

// Options configure a Cache.
type Options struct {
	// Dir is the state directory. The cache lives in cache/ below it, what runs
	// changed in repos/.
	Dir string
	// Git is the git binary; empty looks it up.
	Git string
	// Environ is the environment of the caller, NAME=value. Git sees PATH, HOME,
	// the ssh agent's socket, proxies and certificates of it, nothing else.
	Environ []string
	// MaxCheckouts bounds the bytes of cached checkouts that no run uses; 0 is 20 GiB.
	MaxCheckouts int64
	// MaxMirrors bounds the bytes of mirrors that no run borrows from; 0 is 20 GiB.
	MaxMirrors int64
	// MaxPack bounds what one repository of a run may send out; 0 is 1 GiB.
	MaxPack int64
	// Access opens private repositories.
	Access Access
}

// Cache is the part of a state directory that holds repositories: mirrors,
// checkouts and what runs changed.
type Cache struct {
	dir          string
	git          *git
	access       *access
	maxCheckouts int64
	maxMirrors   int64
	maxPack      int64
	stall        time.Duration // after which a server that says nothing is given up
}

const (
	defaultMaxCheckouts = 20 << 30
	defaultMaxMirrors   = 20 << 30
	defaultMaxPack      = 1 << 30
)

// New returns the cache of a state directory. It touches nothing yet.
func New(o Options) *Cache {
	c := &Cache{
		dir: o.Dir, git: newGit(o.Git, o.Environ), stall: fetchStall,
		maxCheckouts: o.MaxCheckouts, maxMirrors: o.MaxMirrors, maxPack: o.MaxPack,
	}
	c.access = newAccess(o.Access, c.git, o.Environ)
	if c.maxCheckouts <= 0 {
		c.maxCheckouts = defaultMaxCheckouts
	}
	if c.maxMirrors <= 0 {
		c.maxMirrors = defaultMaxMirrors
	}
	if c.maxPack <= 0 {
		c.maxPack = defaultMaxPack
	}
	return c
}

// With returns the same cache with another access to private repositories.
func (c *Cache) With(a Access) *Cache {
	other := *c
	other.access = newAccess(a, c.git, c.access.environ)
	return &other
}

// BareDir is the bare repository of what repository n of a run became.
func (c *Cache) BareDir(run task.ID, n int) string {
	return filepath.Join(c.dir, "repos", string(run), strconv.Itoa(n)+".git")
}

func (c *Cache) checkoutsDir() string { return filepath.Join(c.dir, "cache", "checkout") }
func (c *Cache) mirrorsDir() string   { return filepath.Join(c.dir, "cache", "git") }

// lock takes the lock of that name in dir, waiting for it as long as ctx allows.
// The kernel drops it when its holder dies. Lock files stay: removing one while
// another process waits on it would let two in.
func (c *Cache) lock(ctx context.Context, dir, name string) (unlock func(), err error) {
	locks := filepath.Join(dir, "locks")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		return nil, fmt.Errorf("lock cache: %w", err)
	}
	l, err := filelock.LockPath(ctx, filepath.Join(locks, name), filelock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("lock cache: %w", err)
	}
	return func() { _ = l.Close() }, nil // gives the lock back
}

// Release drops what a run holds of the cache: its checkouts may be evicted again.
// It may be called more than once and by any process.
func (c *Cache) Release(_ context.Context, run task.ID) error {
	if !run.Valid() {
		return errs.New("repo.Release", errs.Internal, "", "run id %q is not one", run)
	}
	for _, e := range c.entries() {
		dir := filepath.Join(c.checkoutsDir(), e, "use")
		marks, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("release checkouts: %w", err)
		}
		for _, m := range marks {
			if !strings.HasPrefix(m.Name(), string(run)+".") {
				continue
			}
			if err := os.Remove(filepath.Join(dir, m.Name())); err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("release checkouts: %w", err)
			}
		}
	}
	return nil
}

// entries are the keys of the finished checkouts.
func (c *Cache) entries() []string {
	all, err := os.ReadDir(c.checkoutsDir())
	if err != nil {
		return nil // no cache yet
	}
	var out []string
	for _, e := range all {
		if isCacheKey(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}
