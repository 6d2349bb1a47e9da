package platform

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// tokenPrefix marks a token as one of ours, for people and for scanners of leaked
// credentials.
const tokenPrefix = "insx_"

// Tokens are the access tokens of runs. Only their hashes are kept: a token can be
// checked, never read again.
type Tokens struct{ db *sql.DB }

// NewTokens returns the tokens in state.db.
func NewTokens(db *sql.DB) *Tokens { return &Tokens{db} }

// Grant is what a token allows.
type Grant struct {
	Run     task.ID
	Team    int64
	User    int64
	Scopes  []string
	Expires time.Time
}

// Allows reports whether the grant holds the scope.
func (g Grant) Allows(scope string) bool { return slices.Contains(g.Scopes, scope) }

// Mint makes a token for a live run with exactly these scopes, which are checked;
// repeated ones count once. It replaces an earlier token of the run.
func (t *Tokens) Mint(ctx context.Context, run task.ID, scopes []string, ttl time.Duration) (secret.String, error) {
	if err := CheckScopes(scopes); err != nil {
		return secret.String{}, err
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	tok := tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	err := t.store(ctx, run, tok, strings.Join(unique(slices.Clone(scopes)), " "), ttl)
	if err != nil {
		return secret.String{}, dberr.Wrap("platform.Mint", "create access token", err)
	}
	return secret.New(tok), nil
}

func (t *Tokens) store(ctx context.Context, run task.ID, tok, scopes string, ttl time.Duration) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a no-op once committed
	now := time.Now()
	if _, err := tx.ExecContext(ctx, `DELETE FROM tokens WHERE run = ? OR expires <= ?`, run, now.UnixNano()); err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(tok))
	res, err := tx.ExecContext(ctx, `
		INSERT INTO tokens (hash, run, team, user, scopes, created, expires)
		SELECT ?, id, json_extract(CAST(spec AS TEXT), '$.team'), json_extract(CAST(spec AS TEXT), '$.user'), ?, ?, ?
		FROM runs WHERE id = ? AND finished = 0`,
		hash[:], scopes, now.UnixNano(), now.Add(ttl).UnixNano(), run)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return errs.New("platform.Mint", errs.Conflict, "insightscli show "+run.Short(),
			"run %s is over or was never recorded", run.Short())
	}
	return tx.Commit()
}

// Renew makes the tokens of a live run good for ttl from now. A run may take longer than a
// token lives: what an agent holds in its environment cannot be replaced by another.
func (t *Tokens) Renew(ctx context.Context, run task.ID, ttl time.Duration) error {
	now := time.Now()
	_, err := t.db.ExecContext(ctx, `
		UPDATE tokens SET expires = ?1 WHERE run = ?2 AND expires < ?1
		AND EXISTS (SELECT 1 FROM runs WHERE id = ?2 AND finished = 0)`, now.Add(ttl).UnixNano(), run)
	return dberr.Wrap("platform.Renew", "renew access token", err)
}

// Revoke makes the tokens of a run void. It may be called again.
func (t *Tokens) Revoke(ctx context.Context, run task.ID) error {
	_, err := t.db.ExecContext(ctx, `DELETE FROM tokens WHERE run = ?`, run)
	return dberr.Wrap("platform.Revoke", "revoke access token", err)
}

// Check returns what a token allows. It is void when it was revoked, when its time
// is up, and as soon as its run is over, whether or not anybody revoked it. The
// error is then of kind Auth and says no more than that.
func (t *Tokens) Check(ctx context.Context, token secret.String) (Grant, error) {
	hash := sha256.Sum256([]byte(token.Reveal()))
	var g Grant
	var scopes string
	var expires int64
	err := t.db.QueryRowContext(ctx, `
		SELECT t.run, t.team, t.user, t.scopes, t.expires FROM tokens t JOIN runs r ON r.id = t.run
		WHERE t.hash = ? AND t.expires > ? AND r.finished = 0`, hash[:], time.Now().UnixNano()).
		Scan(&g.Run, &g.Team, &g.User, &scopes, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return Grant{}, errs.New("platform.Check", errs.Auth, "", "the access token is not valid")
	}
	if err != nil {
		return Grant{}, dberr.Wrap("platform.Check", "check access token", err)
	}
	g.Scopes, g.Expires = strings.Fields(scopes), time.Unix(0, expires)
	return g, nil
}
