package journal

import (
	"context"
	"database/sql"
	"errors"

	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// SecretLinkKey is the name of the keys of a run's link. They are no secret of the
// user's, and without them nobody could look into a sandbox that was kept.
const SecretLinkKey = "insightscli.link"

// EraseSecrets erases what Finish has left: the sandbox of the run is gone.
func (s *Store) EraseSecrets(ctx context.Context, run task.ID) error {
	_, err := s.exec(ctx, "EraseSecrets", "erase secrets", `
		DELETE FROM secrets WHERE run = ? AND run NOT IN (SELECT id FROM runs WHERE state IN (?, ?))`,
		run, task.StateQueued, task.StateInProgress)
	return err
}

// Secrets returns the sealed values of a run, by name. It is empty once the run is
// over, but for the key of a sandbox that stays.
func (s *Store) Secrets(ctx context.Context, run task.ID) (map[string][]byte, error) {
	sealed, err := s.secrets(ctx, run)
	return sealed, dberr.Wrap("journal.Secrets", "read secrets", err)
}

func (s *Store) secrets(ctx context.Context, run task.ID) (sealed map[string][]byte, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT name, sealed FROM secrets WHERE run = ?`, run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sealed = map[string][]byte{}
	for rows.Next() {
		var name string
		var value []byte
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		sealed[name] = value
	}
	return sealed, rows.Err()
}

// PutSecret stores a sealed value of a live run, replacing one of the same name.
func (s *Store) PutSecret(ctx context.Context, run task.ID, name string, sealed []byte) error {
	return s.write(ctx, "PutSecret", "store secret", func(tx *sql.Tx) error {
		// A value stored after the end would never be erased.
		if err := takesInput(ctx, tx, run); err != nil {
			return err
		}
		return putSecret(ctx, tx, run, name, sealed)
	})
}

func putSecret(ctx context.Context, tx *sql.Tx, run task.ID, name string, sealed []byte) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO secrets (run, name, sealed) VALUES (?, ?, ?)
		ON CONFLICT (run, name) DO UPDATE SET sealed = excluded.sealed`, run, name, sealed)
	return err
}
