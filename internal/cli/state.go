package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/skills"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// keyFile seals the secrets of runs; it lies beside state.db, never in it.
const keyFile = "key"

// state is the opened state directory: everything that is recorded, and the way to
// the runner that is at work in it.
type state struct {
	dir        string
	config     config.Config
	db         *statedb.DB
	store      *journal.Store
	tokens     *platform.Tokens
	repos      *repo.Cache
	environ    []string          // of this process, for the git that publishes
	note       func(text string) // tells of a wait
	reload     func() (config.Config, error)
	background background.Client
	providers  *providers
	permitAddr func(netip.Addr) bool // see wiring
}

// openState opens the state directory once; close closes it.
func (a *app) openState(ctx context.Context, c config.Config) (*state, error) {
	if a.state != nil {
		return a.state, nil
	}
	dir, err := c.StateDir()
	if err != nil {
		return nil, err
	}
	db, err := statedb.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	if db.Notice != "" {
		fmt.Fprintf(a.streams.Err, "note: %s\n", db.Notice)
	}
	s := &state{
		dir: dir, config: c, db: db,
		store:     journal.New(db.DB, dir),
		tokens:    platform.NewTokens(db.DB),
		repos:     a.repoCache(dir, c),
		environ:   a.process.Environ,
		note:      a.note,
		reload:    func() (config.Config, error) { return a.config(nil) },
		providers: a.providersFor(c), permitAddr: a.permitAddr,
	}
	s.background = background.Client{
		Dir: dir, Version: build.Get().Version,
		Start: func(context.Context) error {
			return spawnRunner(dir, a.process.Environ, "--idle-end", background.IdleEnd.String())
		},
	}
	a.state = s
	return s, nil
}

// openStateAndAdopt opens the state directory for a command of the user's. Runs
// whose process died are handed to the background runner, whatever the command is.
func (a *app) openStateAndAdopt(ctx context.Context) (*state, error) {
	c, err := a.config(nil)
	if err != nil {
		return nil, err
	}
	s, err := a.openState(ctx, c)
	if err != nil {
		return nil, err
	}
	err = s.adopt(ctx)
	if err != nil && ctx.Err() == nil {
		// What there is to see can be seen, and a command that needs the runner says so.
		fmt.Fprintf(a.streams.Err, "note: nobody goes on with what a dead process left: %v\n", err)
		err = nil
	}
	return s, err
}

// openRun opens the state directory for a command about one run.
func (a *app) openRun(ctx context.Context, name string) (*state, journal.Record, error) {
	s, err := a.openStateAndAdopt(ctx)
	if err != nil {
		return nil, journal.Record{}, err
	}
	rec, err := s.store.Find(ctx, name)
	return s, rec, err
}

// adopt starts the background runner if there are runs that nobody owns.
func (s *state) adopt(ctx context.Context) error {
	recs, err := s.store.Runs(ctx, journal.Filter{Live: true})
	if err != nil {
		return err
	}
	for _, rec := range recs {
		if background.Ownerless(s.dir, rec) {
			return s.background.Knock(ctx)
		}
	}
	return nil
}

// process is this process as one that carries out runs.
type process struct {
	*state
	owner    *owner.Owner
	runner   *runner.Runner
	services *services
	trials   trials
}

// newProcess makes this process an owner of runs. The caller releases the owner.
func (s *state) newProcess(ctx context.Context, force <-chan struct{}) (*process, error) {
	key, err := seal.Open(filepath.Join(s.dir, keyFile))
	if err != nil {
		return nil, err
	}
	me, err := owner.Acquire(ctx, s.dir)
	if err != nil {
		return nil, err
	}
	secrets := &runner.Secrets{Key: key, Store: s.store}
	services, err := s.newServices(ctx, secrets)
	if err != nil {
		return nil, errors.Join(err, me.Release())
	}
	p := &process{state: s, owner: me, services: services}
	p.runner = runner.New(runner.Config{
		Store: s.store, Secrets: secrets, Owner: me.ID, Force: force, Watch: services.watch,
		Steps: &steps.Steps{
			Provider: p.provider, Tokens: s.tokens, Secrets: secrets, Repos: s.repos,
			ReposOf:     func(ctx context.Context, run task.ID) (*repo.Cache, error) { return s.reposOf(ctx, run, secrets) },
			AgentServer: s.agentServer, JWTKey: s.jwtKey,
			EnsureImage: func(ctx context.Context, spec task.Spec, t image.Template, progress func(string)) error {
				_, err := s.providers.builder(s.dir, spec.Engine).Ensure(ctx, t, progress)
				return err
			},
			Proxies: steps.Proxies{
				HTTP: s.config.Machine.HTTPProxy.Reveal(), HTTPS: s.config.Machine.HTTPSProxy.Reveal(), No: s.config.Machine.NoProxy,
			},
			Services: services.open, Debug: s.config.Debug,
			GitHubToken: services.githubToken, RevokeGitHub: services.revokeGitHub,
			FirstRefresh: time.Duration(s.config.Account.RefreshSeconds) * time.Second,
			SkillsDir:    func(hash string) string { return skills.At(s.dir, hash).Dir },
			SkillsTar:    func(hash string, w io.Writer) error { return skills.At(s.dir, hash).WriteTar(w) },
			Dir:          s.dir, Owner: me.Label(), Domain: s.db.ID,
		},
	})
	return p, nil
}

func (s *state) close() error {
	// state.db stays open until the process is gone. Closing the last connection would
	// write the log back into the database and sync both, for nothing: every commit is
	// durable, and the next process goes on with the log as it is.
	return s.providers.close()
}
