package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// Record is what is known about a run.
type Record struct {
	Spec    task.Spec
	State   task.State
	Owner   string // id of the owning process; empty: nobody's
	Sandbox string // the provider's id of its sandbox; empty: none yet
	Version string // of the program that began the run, or made it if it was not begun

	Created  time.Time
	Started  time.Time    // zero: not yet
	Finished time.Time    // zero: not yet
	Result   *task.Result // nil: not yet
}

// Filter chooses runs; its zero value chooses all.
type Filter struct {
	Live  bool         // only those that are not over
	Ended bool         // only those that are over
	State []task.State // only those in one of these states
	Owner string       // only those of this owner
	Task  task.ID      // only those of this task
	Limit int          // at most so many, the newest; 0 is all
}

// Latest is the name under which [Store.Find] knows the newest run.
const Latest = "latest"

const columns = `spec, state, owner, sandbox, version, created, started, finished, result`

// Run returns one run.
func (s *Store) Run(ctx context.Context, id task.ID) (Record, error) {
	recs, err := s.query(ctx, "Run", `WHERE id = ?`, id)
	if err != nil {
		return Record{}, err
	}
	if len(recs) == 0 {
		return Record{}, notFound("Run", string(id))
	}
	return recs[0], nil
}

// Runs returns the runs that f chooses, the newest first.
func (s *Store) Runs(ctx context.Context, f Filter) ([]Record, error) {
	where, args := f.where()
	if f.Limit > 0 {
		args = append(args, f.Limit)
		return s.query(ctx, "Runs", where+` ORDER BY n DESC LIMIT ?`, args...)
	}
	return s.query(ctx, "Runs", where+` ORDER BY n DESC`, args...)
}

func (f Filter) where() (string, []any) {
	var conds []string
	var args []any
	states := func(in ...task.State) {
		conds = append(conds, `state IN (?`+strings.Repeat(`, ?`, len(in)-1)+`)`)
		for _, st := range in {
			args = append(args, st)
		}
	}
	if f.Live {
		states(task.StateQueued, task.StateInProgress)
	}
	if f.Ended {
		states(task.StateCompleted, task.StateFailed, task.StateCancelled)
	}
	if len(f.State) > 0 {
		states(f.State...)
	}
	if f.Owner != "" {
		conds, args = append(conds, `owner = ?`), append(args, f.Owner)
	}
	if f.Task != "" {
		conds, args = append(conds, `task = ?`), append(args, f.Task)
	}
	if len(conds) == 0 {
		return "", nil
	}
	return `WHERE ` + strings.Join(conds, ` AND `), args
}

// Find returns the run that name means: an id, an unambiguous prefix of one, or
// [Latest].
func (s *Store) Find(ctx context.Context, name string) (Record, error) {
	if name == Latest {
		recs, err := s.Runs(ctx, Filter{Limit: 1})
		if err != nil || len(recs) == 1 {
			return first(recs), err
		}
		return Record{}, errs.New("journal.Find", errs.NotFound, "start one with: insightscli run", "%w: there are no runs yet", ErrNotFound)
	}
	prefix := strings.ToLower(name)
	if prefix == "" || strings.Trim(prefix, "0123456789abcdef-") != "" {
		return Record{}, notFound("Find", name)
	}
	// '~' sorts after every character of an id.
	recs, err := s.query(ctx, "Find", `WHERE id >= ? AND id < ? ORDER BY id LIMIT 4`, prefix, prefix+"~")
	switch {
	case err != nil:
		return Record{}, err
	case len(recs) == 0:
		return Record{}, notFound("Find", name)
	case len(recs) > 1:
		return Record{}, ambiguous(name, recs)
	}
	return recs[0], nil
}

func first(recs []Record) Record {
	if len(recs) == 0 {
		return Record{}
	}
	return recs[0]
}

func ambiguous(name string, recs []Record) error {
	ids := make([]string, len(recs))
	for i, r := range recs {
		ids[i] = string(r.Spec.Run)
	}
	return errs.New("journal.Find", errs.Usage, "give more characters of the id",
		"%q means several runs: %s", name, strings.Join(ids, ", "))
}

func (s *Store) query(ctx context.Context, op, where string, args ...any) ([]Record, error) {
	recs, err := s.scan(ctx, `SELECT `+columns+` FROM runs `+where, args...)
	return recs, dberr.Wrap("journal."+op, "read runs", err)
}

func (s *Store) scan(ctx context.Context, query string, args ...any) (recs []Record, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		rec, err := scanRecord(rows)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	return recs, rows.Err()
}

func scanRecord(rows *sql.Rows) (Record, error) {
	var r Record
	var spec, result []byte
	var created, started, finished int64
	err := rows.Scan(&spec, &r.State, &r.Owner, &r.Sandbox, &r.Version, &created, &started, &finished, &result)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(spec, &r.Spec); err != nil {
		return r, fmt.Errorf("spec of a run: %w", err)
	}
	if len(result) > 0 {
		r.Result = new(task.Result)
		if err := json.Unmarshal(result, r.Result); err != nil {
			return r, fmt.Errorf("result of run %s: %w", r.Spec.Run.Short(), err)
		}
	}
	r.Created, r.Started, r.Finished = moment(created), moment(started), moment(finished)
	return r, nil
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
