package journal

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// Step returns what a step gave when it was done with the same input, and whether
// it was. A step whose input differs has not been done.
func (s *Store) Step(ctx context.Context, run task.ID, name, inputHash string) (output []byte, done bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT output FROM steps WHERE run = ? AND name = ? AND input_hash = ?`,
		run, name, inputHash).Scan(&output)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, dberr.Wrap("journal.Step", "read step "+name, err)
	}
	return output, true, nil
}

// StepDone records what a step gave. It may be called again: the last output stays.
func (s *Store) StepDone(ctx context.Context, run task.ID, name, inputHash string, output []byte) error {
	_, err := s.exec(ctx, "StepDone", "record step "+name, `
		INSERT INTO steps (run, name, input_hash, output, done) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (run, name, input_hash) DO UPDATE SET output = excluded.output, done = excluded.done`,
		run, name, inputHash, output, time.Now().UnixNano())
	return err
}
