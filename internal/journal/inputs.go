package journal

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

// keptInputs is how many inputs of a run are remembered, so that a repeated one is
// known again.
const keptInputs = 500

// QueuedInput is an input that waits to be acted on. N is its place in the queue.
type QueuedInput struct {
	N int64
	task.Input
}

// AddInput records something said to a run, before anybody acts on it. An input
// whose ID is among the last 500 of the run is not recorded again: dup. A run that
// is over takes none.
func (s *Store) AddInput(ctx context.Context, run task.ID, in task.Input) (dup bool, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return false, fmt.Errorf("record input: %w", err)
	}
	err = s.write(ctx, "AddInput", "record input", func(tx *sql.Tx) error {
		if err := takesInput(ctx, tx, run); err != nil {
			return err
		}
		if dup, err = isKnown(ctx, tx, run, in.ID); err != nil || dup {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO inputs (run, id, body, at) VALUES (?, ?, ?, ?)`,
			run, in.ID, body, time.Now().UnixNano())
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			DELETE FROM inputs WHERE run = ?1 AND taken = 1 AND n <=
			  (SELECT n FROM inputs WHERE run = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2)`, run, keptInputs)
		return err
	})
	return dup, err
}

func takesInput(ctx context.Context, tx *sql.Tx, run task.ID) error {
	var state task.State
	err := tx.QueryRowContext(ctx, `SELECT state FROM runs WHERE id = ?`, run).Scan(&state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return notFound("AddInput", string(run))
	case err != nil:
		return err
	case state.Terminal():
		return errs.New("journal.AddInput", errs.Conflict, "insightscli show "+run.Short(),
			"run %s is over (%s)", run.Short(), state)
	}
	return nil
}

func isKnown(ctx context.Context, tx *sql.Tx, run task.ID, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	var n int
	err := tx.QueryRowContext(ctx, `
		SELECT COUNT(*) FROM (SELECT id FROM inputs WHERE run = ? ORDER BY n DESC LIMIT ?) WHERE id = ?`,
		run, keptInputs, id).Scan(&n)
	return n > 0, err
}

// Inputs returns what was said to a run and not taken yet, in order.
func (s *Store) Inputs(ctx context.Context, run task.ID) ([]QueuedInput, error) {
	ins, err := s.inputs(ctx, run)
	return ins, dberr.Wrap("journal.Inputs", "read inputs", err)
}

func (s *Store) inputs(ctx context.Context, run task.ID) (ins []QueuedInput, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT n, body FROM inputs WHERE run = ? AND taken = 0 ORDER BY n`, run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var q QueuedInput
		var body []byte
		if err := rows.Scan(&q.N, &body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &q.Input); err != nil {
			return nil, fmt.Errorf("input %d: %w", q.N, err)
		}
		ins = append(ins, q)
	}
	return ins, rows.Err()
}

// Messages returns the follow-up messages of a run, taken or not, in order, as far as they
// are remembered.
func (s *Store) Messages(ctx context.Context, run task.ID) (messages []task.Input, err error) {
	err = func() error {
		rows, err := s.db.QueryContext(ctx, `SELECT body FROM inputs WHERE run = ? ORDER BY n`, run)
		if err != nil {
			return err
		}
		for rows.Next() {
			var body []byte
			var in task.Input
			if err := rows.Scan(&body); err != nil {
				return errors.Join(err, rows.Close())
			}
			if err := json.Unmarshal(body, &in); err != nil {
				return errors.Join(err, rows.Close())
			}
			if in.Kind == task.InputMessage || in.Kind == task.InputSteer {
				messages = append(messages, in)
			}
		}
		return errors.Join(rows.Err(), rows.Close())
	}()
	return messages, dberr.Wrap("journal.Messages", "read messages", err)
}

// TakeInput marks an input as acted on: it is not returned again.
func (s *Store) TakeInput(ctx context.Context, run task.ID, n int64) error {
	_, err := s.exec(ctx, "TakeInput", "take input", `UPDATE inputs SET taken = 1 WHERE run = ? AND n = ?`, run, n)
	return err
}
