package platform

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// Flags are the feature flags of teams.
type Flags struct{ db *sql.DB }

// NewFlags returns the flags in state.db.
func NewFlags(db *sql.DB) *Flags { return &Flags{db} }

// Flag is one feature flag. One that was never set is not enabled.
type Flag struct {
	Enabled bool
	Payload json.RawMessage // empty: none
}

// Get returns a flag of a team.
func (f *Flags) Get(ctx context.Context, team int64, key string) (Flag, error) {
	var flag Flag
	var payload string
	err := f.db.QueryRowContext(ctx, `SELECT enabled, payload FROM flags WHERE team = ? AND key = ?`, team, key).
		Scan(&flag.Enabled, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return Flag{}, nil
	}
	flag.Payload = json.RawMessage(payload)
	return flag, dberr.Wrap("platform.Get", "read flag "+key, err)
}

// Set sets a flag of a team.
func (f *Flags) Set(ctx context.Context, team int64, key string, flag Flag) error {
	if len(flag.Payload) > 0 && !json.Valid(flag.Payload) {
		return errs.New("platform.Set", errs.Usage, "", "the payload of flag %s is not JSON", key)
	}
	_, err := f.db.ExecContext(ctx, `
		INSERT INTO flags (team, key, enabled, payload) VALUES (?, ?, ?, ?)
		ON CONFLICT (team, key) DO UPDATE SET enabled = excluded.enabled, payload = excluded.payload`,
		team, key, flag.Enabled, string(flag.Payload))
	return dberr.Wrap("platform.Set", "set flag "+key, err)
}
