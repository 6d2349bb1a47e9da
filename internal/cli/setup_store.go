package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/setup"
)

// setupStore is what package setup needs of state.db.
type setupStore interface {
	setup.AppStore
	setup.FlagStore
}

// stored is a state directory's.
type stored struct {
	apps     *platform.OAuthApps
	flags    *platform.Flags
	accounts *platform.Accounts
}

// storeOf opens the state directory; to look only, without making one that is not
// there yet.
func (a *app) storeOf(ctx context.Context, c config.Config, look bool) (setupStore, error) {
	if look {
		dir, err := c.StateDir()
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(dir, "state.db")); errors.Is(err, fs.ErrNotExist) {
			return fresh{}, nil
		}
	}
	s, err := a.openState(ctx, c)
	if err != nil {
		return nil, err
	}
	return stored{platform.NewOAuthApps(s.db.DB), platform.NewFlags(s.db.DB), platform.NewAccounts(s.db.DB)}, nil
}

func (s stored) App(ctx context.Context, name string) (setup.App, error) {
	got, err := s.apps.Get(ctx, name)
	return setup.App{Name: got.Name, ClientID: got.ClientID, Public: got.Public, RedirectURIs: got.RedirectURIs}, err
}

func (s stored) PutApp(ctx context.Context, app setup.App) error {
	// No secret is made: tokens of runs are made in this process, and nobody would be
	// told one.
	_, err := s.apps.Ensure(ctx, platform.OAuthApp{
		Name: app.Name, ClientID: app.ClientID, Public: app.Public, RedirectURIs: app.RedirectURIs,
	}, secret.String{})
	return err
}

func (s stored) Teams(ctx context.Context) ([]int64, error) {
	teams, err := s.accounts.Teams(ctx)
	var ids []int64
	for _, t := range teams {
		ids = append(ids, t.ID)
	}
	return ids, err
}

func (s stored) Enabled(ctx context.Context, team int64, key string) (bool, error) {
	flag, err := s.flags.Get(ctx, team, key)
	return flag.Enabled, err
}

func (s stored) Enable(ctx context.Context, team int64, key string) error {
	flag, err := s.flags.Get(ctx, team, key)
	if err != nil {
		return err
	}
	flag.Enabled = true
	return s.flags.Set(ctx, team, key, flag)
}

// fresh is a state directory that is not there yet: it begins with one team.
type fresh struct{}

func (fresh) App(_ context.Context, name string) (setup.App, error) {
	return setup.App{}, errs.New("cli.setup", errs.NotFound, "", "there is no OAuth application %s", name)
}

func (fresh) PutApp(context.Context, setup.App) error                  { return nil }
func (fresh) Teams(context.Context) ([]int64, error)                   { return []int64{1}, nil }
func (fresh) Enabled(context.Context, int64, string) (bool, error)     { return false, nil }
func (fresh) Enable(ctx context.Context, team int64, key string) error { return nil }
