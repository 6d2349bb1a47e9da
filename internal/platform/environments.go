package platform

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// Environments are the sandbox environments of teams: named network rules that a run
// can ask for.
type Environments struct{ db *sql.DB }

// NewEnvironments returns the environments in state.db.
func NewEnvironments(db *sql.DB) *Environments { return &Environments{db} }

// Environment is one sandbox environment. Name is unique in its team.
type Environment struct {
	Team      int64
	Name      string
	CreatedBy int64
	Private   bool         // only its creator may use it
	Network   task.Network // full, trusted or custom
	Domains   []string     // custom: what is allowed
	// IncludeDefault adds the trusted list to Domains.
	IncludeDefault bool
}

const environmentColumns = `team, name, created_by, private, network, domains, include_default`

// Get returns an environment that the user may use; one that is another user's own
// does not exist for this one.
func (e *Environments) Get(ctx context.Context, team, user int64, name string) (Environment, error) {
	all, err := e.list(ctx, `AND name = ?`, team, user, name)
	if err != nil {
		return Environment{}, err
	}
	if len(all) == 0 {
		return Environment{}, errs.New("platform.Get", errs.NotFound, "see the environments with: insightscli env list",
			"there is no environment %q", name)
	}
	return all[0], nil
}

// List returns the environments of a team that the user may use, by name.
func (e *Environments) List(ctx context.Context, team, user int64) ([]Environment, error) {
	return e.list(ctx, `ORDER BY name`, team, user)
}

// Put makes an environment, or changes the one of its name. Another user's own is
// not changed.
func (e *Environments) Put(ctx context.Context, env Environment) error {
	if err := env.check(); err != nil {
		return err
	}
	domains, err := json.Marshal(env.Domains)
	if err != nil {
		return fmt.Errorf("store environment: %w", err)
	}
	now := time.Now().UnixNano()
	res, err := e.db.ExecContext(ctx, `
		INSERT INTO environments (`+environmentColumns+`, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (team, name) DO UPDATE SET private = excluded.private, network = excluded.network,
		  domains = excluded.domains, include_default = excluded.include_default, updated = excluded.updated
		WHERE private = 0 OR created_by = excluded.created_by`,
		env.Team, env.Name, env.CreatedBy, env.Private, env.Network, string(domains), env.IncludeDefault, now, now)
	if err != nil {
		return dberr.Wrap("platform.Put", "store environment "+env.Name, err)
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return errs.New("platform.Put", errs.Conflict, "choose another name", "the environment %q is another user's", env.Name)
	}
	return dberr.Wrap("platform.Put", "store environment "+env.Name, err)
}

func (env Environment) check() error {
	switch {
	case env.Name == "":
		return errs.New("platform.Put", errs.Usage, "", "an environment needs a name")
	case env.Network != task.NetworkFull && env.Network != task.NetworkTrusted && env.Network != task.NetworkCustom:
		return errs.New("platform.Put", errs.Usage, "use full, trusted or custom", "there is no network level %q for an environment", env.Network)
	case env.Network != task.NetworkCustom && len(env.Domains) > 0:
		return errs.New("platform.Put", errs.Usage, "use the level custom", "the network level %s takes no domains", env.Network)
	}
	return nil
}

// Delete removes an environment. Runs that use it keep what they have read of it.
func (e *Environments) Delete(ctx context.Context, team, user int64, name string) error {
	if _, err := e.Get(ctx, team, user, name); err != nil {
		return err
	}
	_, err := e.db.ExecContext(ctx, `DELETE FROM environments WHERE team = ? AND name = ?`, team, name)
	return dberr.Wrap("platform.Delete", "remove environment "+name, err)
}

// list returns what the user may use; rest goes on with the query, from argument 3.
func (e *Environments) list(ctx context.Context, rest string, args ...any) ([]Environment, error) {
	all, err := e.query(ctx, `SELECT `+environmentColumns+` FROM environments
		WHERE team = ? AND (private = 0 OR created_by = ?) `+rest, args...)
	return all, dberr.Wrap("platform.List", "read environments", err)
}

func (e *Environments) query(ctx context.Context, query string, args ...any) (all []Environment, err error) {
	rows, err := e.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var env Environment
		var domains string
		err := rows.Scan(&env.Team, &env.Name, &env.CreatedBy, &env.Private, &env.Network, &domains, &env.IncludeDefault)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(domains), &env.Domains); err != nil {
			return nil, fmt.Errorf("domains of environment %s: %w", env.Name, err)
		}
		all = append(all, env)
	}
	return all, rows.Err()
}
