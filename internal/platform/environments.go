package platform

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// Environments are the sandbox environments of teams: what a run may reach and what its
// agent gets, under a name that a run can ask for.
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
	Domains   []string     // custom: rules of what is allowed
	// IncludeDefault adds the trusted list to Domains.
	IncludeDefault bool
	Image          string            // of the sandbox; empty is the template's
	Repos          []string          // org/repo, lower case: runs on others may not use it; empty is any
	Env            map[string]string // plain variables of the agent
	Sealed         map[string][]byte // secret variables, sealed under [Environment.SealedAs]
}

// SealedAs is the name that the secrets of an environment are bound to, in place of a
// run's.
func (env Environment) SealedAs() string { return fmt.Sprintf("environment %d/%s", env.Team, env.Name) }

// environmentName is the form of a name: a file of a repository and a command line can
// hold it, and no shell makes anything else of it.
var environmentName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
})

// Check reports what is wrong with an environment, but for its rules.
func (env Environment) Check() error {
	const op = "platform.Check"
	switch {
	case !environmentName().MatchString(env.Name):
		return errs.New(op, errs.Usage, "use letters, digits, '.', '_' and '-', at most 64", "%q is no name for an environment", env.Name)
	case env.Network != task.NetworkFull && env.Network != task.NetworkTrusted && env.Network != task.NetworkCustom:
		return errs.New(op, errs.Usage, "use full, trusted or custom", "there is no network level %q for an environment", env.Network)
	case env.Network != task.NetworkCustom && (len(env.Domains) > 0 || env.IncludeDefault):
		return errs.New(op, errs.Usage, "use the level custom", "the network level %s takes no domains", env.Network)
	}
	for _, r := range env.Repos {
		org, name, ok := strings.Cut(r, "/")
		if !ok || org == "" || name == "" || strings.Contains(name, "/") || strings.ToLower(r) != r {
			return errs.New(op, errs.Usage, "write it as org/repo", "%q is no repository", r)
		}
	}
	for name := range env.Sealed {
		if _, both := env.Env[name]; both {
			return errs.New(op, errs.Usage, "", "%s is a variable and a secret", name)
		}
	}
	return nil
}

// Get returns an environment that the user may use; one that is another user's own
// does not exist for this one.
func (e *Environments) Get(ctx context.Context, team, user int64, name string) (Environment, error) {
	return get(ctx, e.db, team, user, name)
}

func get(ctx context.Context, db querier, team, user int64, name string) (Environment, error) {
	all, err := list(ctx, db, `AND name = ?`, team, user, name)
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
	return list(ctx, e.db, `ORDER BY name`, team, user)
}

// Create makes an environment. A name that is taken, by whomever, is an error.
func (e *Environments) Create(ctx context.Context, env Environment) error {
	if err := env.Check(); err != nil {
		return err
	}
	values, err := env.values()
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	res, err := e.db.ExecContext(ctx, `
		INSERT INTO environments (`+environmentColumns+`, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (team, name) DO NOTHING`, append(values, now, now)...)
	return changed(res, err, "store environment "+env.Name,
		errs.New("platform.Create", errs.Conflict, "insightscli env edit "+env.Name, "there is an environment %q already", env.Name))
}

// Edit changes an environment that the user may use, in one transaction with reading it.
// Its team, name and creator stay.
func (e *Environments) Edit(ctx context.Context, team, user int64, name string, change func(*Environment) error) (err error) {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return dberr.Wrap("platform.Edit", "change environment "+name, err)
	}
	defer func() { _ = tx.Rollback() }() // a no-op once committed
	// A write first: two editors then wait for each other, instead of one of them failing.
	if _, err := tx.ExecContext(ctx, `UPDATE environments SET updated = ? WHERE team = ? AND name = ?`, time.Now().UnixNano(), team, name); err != nil {
		return dberr.Wrap("platform.Edit", "change environment "+name, err)
	}
	env, err := get(ctx, tx, team, user, name)
	if err != nil {
		return err
	}
	was := env
	if err := change(&env); err != nil {
		return err
	}
	env.Team, env.Name, env.CreatedBy = was.Team, was.Name, was.CreatedBy
	if err := env.Check(); err != nil {
		return err
	}
	values, err := env.values()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE environments SET (`+environmentColumns+`) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		WHERE team = ? AND name = ?`, append(values, team, name)...)
	if err == nil {
		err = tx.Commit()
	}
	return dberr.Wrap("platform.Edit", "change environment "+name, err)
}

// Delete removes an environment. Runs that use it keep what they have read of it.
func (e *Environments) Delete(ctx context.Context, team, user int64, name string) error {
	res, err := e.db.ExecContext(ctx, `DELETE FROM environments WHERE team = ? AND name = ? AND (private = 0 OR created_by = ?)`, team, name, user)
	return changed(res, err, "remove environment "+name,
		errs.New("platform.Delete", errs.NotFound, "see the environments with: insightscli env list", "there is no environment %q", name))
}

// changed is the error of a statement that should have changed a row, none if it did.
func changed(res sql.Result, err error, doing string, none error) error {
	var n int64
	if err == nil {
		n, err = res.RowsAffected()
	}
	if err == nil && n == 0 {
		return none
	}
	return dberr.Wrap("platform", doing, err)
}

const environmentColumns = `team, name, created_by, private, network, domains, include_default, image, repos, env, sealed`

// values are what is stored, in the order of environmentColumns.
func (env Environment) values() ([]any, error) {
	var err error
	text := func(v any) string {
		b, e := json.Marshal(v)
		err = errors.Join(err, e)
		return string(b)
	}
	values := []any{
		env.Team, env.Name, env.CreatedBy, env.Private, env.Network, text(env.Domains), env.IncludeDefault,
		env.Image, text(env.Repos), text(env.Env), text(env.Sealed),
	}
	return values, err
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// list returns what the user may use; rest goes on with the query, from argument 3.
func list(ctx context.Context, db querier, rest string, args ...any) ([]Environment, error) {
	all, err := query(ctx, db, `SELECT `+environmentColumns+` FROM environments
		WHERE team = ? AND (private = 0 OR created_by = ?) `+rest, args...)
	return all, dberr.Wrap("platform.List", "read environments", err)
}

func query(ctx context.Context, db querier, query string, args ...any) (all []Environment, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var env Environment
		var domains, repos, vars, sealed string
		err := rows.Scan(&env.Team, &env.Name, &env.CreatedBy, &env.Private, &env.Network, &domains, &env.IncludeDefault,
			&env.Image, &repos, &vars, &sealed)
		if err != nil {
			return nil, err
		}
		for _, f := range []struct {
			text string
			into any
		}{{domains, &env.Domains}, {repos, &env.Repos}, {vars, &env.Env}, {sealed, &env.Sealed}} {
			if err := json.Unmarshal([]byte(f.text), f.into); err != nil {
				return nil, fmt.Errorf("environment %s: %w", env.Name, err)
			}
		}
		all = append(all, env)
	}
	return all, rows.Err()
}
