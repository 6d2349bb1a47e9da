package journal

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// nanos is how costs are kept: whole numbers add up exactly, in any order.
const nanos = 1e9

// AddUsage adds what a request to a model used, and returns the run's sum with it, in one
// transaction. A run that is over is accounted too: its last request may end after it.
func (s *Store) AddUsage(ctx context.Context, run task.ID, model string, used task.Tokens) (total task.Tokens, err error) {
	err = s.write(ctx, "AddUsage", "record usage", func(tx *sql.Tx) error {
		if err := exists(ctx, tx, run); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO usage (run, model, input, output, cache_read, cache_write, thought, requests, unpriced, cost_nanos)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (run, model) DO UPDATE SET
			  input = input + excluded.input, output = output + excluded.output,
			  cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write,
			  thought = thought + excluded.thought, requests = requests + excluded.requests,
			  unpriced = unpriced + excluded.unpriced, cost_nanos = cost_nanos + excluded.cost_nanos`,
			run, model, used.Input, used.Output, used.CacheRead, used.CacheWrite, used.Thought,
			used.Requests, used.Unpriced, int64(math.Round(used.CostUSD*nanos)))
		if err != nil {
			return err
		}
		total, _, err = usageOf(ctx, tx, run)
		return err
	})
	return total, err
}

// Usage returns what a run has used of models: the sum, and by model.
func (s *Store) Usage(ctx context.Context, run task.ID) (total task.Tokens, byModel map[string]task.Tokens, err error) {
	total, byModel, err = usageOf(ctx, s.db, run)
	return total, byModel, dberr.Wrap("journal.Usage", "read usage", err)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func usageOf(ctx context.Context, q querier, run task.ID) (total task.Tokens, byModel map[string]task.Tokens, err error) {
	rows, err := q.QueryContext(ctx, `
		SELECT model, input, output, cache_read, cache_write, thought, requests, unpriced, cost_nanos
		FROM usage WHERE run = ?`, run)
	if err != nil {
		return total, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	byModel = map[string]task.Tokens{}
	var cost, sum int64
	for rows.Next() {
		var model string
		var t task.Tokens
		err := rows.Scan(&model, &t.Input, &t.Output, &t.CacheRead, &t.CacheWrite, &t.Thought, &t.Requests, &t.Unpriced, &cost)
		if err != nil {
			return total, nil, err
		}
		t.Total, t.CostUSD = t.Input+t.Output+t.CacheRead+t.CacheWrite, float64(cost)/nanos
		byModel[model] = t
		total = total.Add(t)
		sum += cost
	}
	total.CostUSD = float64(sum) / nanos
	return total, byModel, rows.Err()
}
