package platform

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// Accounts are the teams and users. A state directory begins with one of each, both
// with id 1.
type Accounts struct{ db *sql.DB }

// NewAccounts returns the teams and users in state.db.
func NewAccounts(db *sql.DB) *Accounts { return &Accounts{db} }

// Team is whom runs and environments belong to.
type Team struct {
	ID   int64
	Name string
}

// User is who starts runs.
type User struct {
	ID          int64
	Name, Email string
}

// Team returns one team.
func (a *Accounts) Team(ctx context.Context, id int64) (Team, error) {
	t := Team{ID: id}
	err := a.db.QueryRowContext(ctx, `SELECT name FROM teams WHERE id = ?`, id).Scan(&t.Name)
	return t, found(err, "team", id)
}

// Teams returns all teams, the oldest first.
func (a *Accounts) Teams(ctx context.Context) ([]Team, error) {
	rows, err := a.db.QueryContext(ctx, `SELECT id, name FROM teams ORDER BY id`)
	if err != nil {
		return nil, dberr.Wrap("platform.Teams", "list teams", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has what went wrong
	var all []Team
	for rows.Next() {
		var t Team
		if err := rows.Scan(&t.ID, &t.Name); err != nil {
			return nil, dberr.Wrap("platform.Teams", "list teams", err)
		}
		all = append(all, t)
	}
	return all, dberr.Wrap("platform.Teams", "list teams", rows.Err())
}

// AddTeam makes a team.
func (a *Accounts) AddTeam(ctx context.Context, name string) (Team, error) {
	id, err := a.insert(ctx, `INSERT INTO teams (name, created) VALUES (?, ?)`, name, time.Now().UnixNano())
	return Team{ID: id, Name: name}, dberr.Wrap("platform.AddTeam", "create team", err)
}

// User returns one user.
func (a *Accounts) User(ctx context.Context, id int64) (User, error) {
	u := User{ID: id}
	err := a.db.QueryRowContext(ctx, `SELECT name, email FROM users WHERE id = ?`, id).Scan(&u.Name, &u.Email)
	return u, found(err, "user", id)
}

// AddUser makes a user.
func (a *Accounts) AddUser(ctx context.Context, name, email string) (User, error) {
	id, err := a.insert(ctx, `INSERT INTO users (name, email, created) VALUES (?, ?, ?)`, name, email, time.Now().UnixNano())
	return User{ID: id, Name: name, Email: email}, dberr.Wrap("platform.AddUser", "create user", err)
}

func (a *Accounts) insert(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := a.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// found makes a missing row a NotFound error.
func found(err error, what string, name any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errs.New("platform.Get", errs.NotFound, "", "there is no %s %v", what, name)
	}
	return dberr.Wrap("platform.Get", "read "+what, err)
}
