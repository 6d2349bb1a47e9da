package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// ErrNotFound is wrapped when no run of that id or prefix is recorded.
var ErrNotFound = errors.New("no such run")

// Store keeps runs in state.db. Its methods may be called at the same time, from
// any number of processes.
type Store struct {
	db  *sql.DB
	dir string
}

// New returns a Store over the database of the state directory dir.
func New(db *sql.DB, dir string) *Store { return &Store{db: db, dir: dir} }

// Dir returns the state directory.
func (s *Store) Dir() string { return s.dir }

// LogPath returns where the event log of a run lies.
func (s *Store) LogPath(spec task.Spec) string {
	return filepath.Join(s.dir, "logs", fmt.Sprintf("team_%d", spec.Team),
		"task_"+string(spec.Task), "run_"+string(spec.Run)+".jsonl")
}

// ServerLogPath returns where the agent server's own log of a run is kept, if the run
// failed.
func (s *Store) ServerLogPath(spec task.Spec) string {
	return strings.TrimSuffix(s.LogPath(spec), ".jsonl") + ".server.log"
}

// RequestLogPath returns where the requests of a run to models are logged, one JSON line
// each and without their content.
func (s *Store) RequestLogPath(spec task.Spec) string {
	return strings.TrimSuffix(s.LogPath(spec), ".jsonl") + ".requests.log"
}

// EgressLogPath is where the record of a run's network connections is kept, beside its log.
func (s *Store) EgressLogPath(spec task.Spec) string {
	return strings.TrimSuffix(s.LogPath(spec), ".jsonl") + ".egress.jsonl"
}

// Create records a new run, queued and without an owner, with its task (unless that
// exists) and its sealed secrets, in one transaction.
func (s *Store) Create(ctx context.Context, spec task.Spec, sealed map[string][]byte) error {
	return s.create(ctx, fresh{spec: spec, state: task.StateQueued}, sealed)
}

// CreateBegun records a new run that its owner begins at once: what Create, Claim and
// Begin do, in one transaction.
func (s *Store) CreateBegun(ctx context.Context, spec task.Spec, sealed map[string][]byte, owner string) error {
	return s.create(ctx, fresh{spec: spec, state: task.StateInProgress, owner: owner, started: time.Now()}, sealed)
}

// fresh is how a run is first recorded.
type fresh struct {
	spec    task.Spec
	state   task.State
	owner   string
	started time.Time // zero: not yet
}

func (s *Store) create(ctx context.Context, run fresh, sealed map[string][]byte) error {
	spec := run.spec
	if !spec.Run.Valid() || !spec.Task.Valid() {
		return errs.New("journal.Create", errs.Internal, "", "record run: malformed id %q of task %q", spec.Run, spec.Task)
	}
	body, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("record run: %w", err)
	}
	return s.write(ctx, "Create", "record run", func(tx *sql.Tx) error {
		now := time.Now().UnixNano()
		_, err := tx.ExecContext(ctx, `
			INSERT INTO tasks (id, team, number, title, origin, created)
			SELECT ?, ?, COALESCE(MAX(number) + 1, 0), ?, ?, ? FROM tasks WHERE team = ?
			ON CONFLICT (id) DO NOTHING`,
			spec.Task, spec.Team, spec.Title, spec.OriginProduct, now, spec.Team)
		if err != nil {
			return err
		}
		if err := s.insertRun(ctx, tx, run, body, now); err != nil {
			return err
		}
		for name, value := range sealed {
			if err := putSecret(ctx, tx, spec.Run, name, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) insertRun(ctx context.Context, tx *sql.Tx, run fresh, body []byte, now int64) error {
	var started int64
	if !run.started.IsZero() {
		started = run.started.UnixNano()
	}
	id := run.spec.Run
	res, err := tx.ExecContext(ctx, `
		INSERT INTO runs (id, task, state, owner, version, spec, created, started) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`,
		id, run.spec.Task, run.state, run.owner, build.Get().Version, body, now, started)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return errs.New("journal.Create", errs.Conflict, "insightscli show "+id.Short(), "run %s exists already", id.Short())
}

// Claim makes to the owner of a run if from is its owner now ("" is nobody). It
// reports whether it did; when several try, exactly one does.
func (s *Store) Claim(ctx context.Context, run task.ID, from, to string) (bool, error) {
	n, err := s.exec(ctx, "Claim", "claim run", `UPDATE runs SET owner = ? WHERE id = ? AND owner = ?`, to, run, from)
	return n == 1, err
}

// Begin notes that a run is in progress. Its start time and its version are those of
// the first Begin.
func (s *Store) Begin(ctx context.Context, run task.ID) error {
	n, err := s.exec(ctx, "Begin", "begin run", `
		UPDATE runs SET state = ?1, started = CASE started WHEN 0 THEN ?2 ELSE started END,
			version = CASE started WHEN 0 THEN ?3 ELSE version END
		WHERE id = ?4 AND state IN (?5, ?6)`,
		task.StateInProgress, time.Now().UnixNano(), build.Get().Version, run, task.StateQueued, task.StateInProgress)
	if err != nil || n == 1 {
		return err
	}
	return s.refused(ctx, "Begin", run)
}

// SetSandbox notes the provider's id of the run's sandbox.
func (s *Store) SetSandbox(ctx context.Context, run task.ID, id string) error {
	n, err := s.exec(ctx, "SetSandbox", "note sandbox", `UPDATE runs SET sandbox = ? WHERE id = ?`, id, run)
	if err != nil || n == 1 {
		return err
	}
	return notFound("SetSandbox", string(run))
}

// Finish writes how a run ended and erases its secrets, in one transaction; where a
// sandbox stays the key of its link does, until EraseSecrets. The first result stays:
// another Finish changes nothing and is no error.
func (s *Store) Finish(ctx context.Context, run task.ID, res task.Result) error {
	if !res.State.Terminal() {
		return errs.New("journal.Finish", errs.Internal, "", "finish run %s: state %q is not an end", run.Short(), res.State)
	}
	body, err := json.Marshal(res)
	if err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	finished := res.Finished
	if finished.IsZero() {
		finished = time.Now()
	}
	return s.write(ctx, "Finish", "finish run", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `
			UPDATE runs SET state = ?, result = ?, finished = ? WHERE id = ? AND state IN (?, ?)`,
			res.State, body, finished.UnixNano(), run, task.StateQueued, task.StateInProgress)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			if err := exists(ctx, tx, run); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM secrets WHERE run = ? AND NOT (name = ? AND ?)`,
			run, SecretLinkKey, res.Sandbox != "")
		return err
	})
}

// write runs f in one transaction.
func (s *Store) write(ctx context.Context, op, doing string, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return dberr.Wrap("journal."+op, doing, err)
	}
	defer func() { _ = tx.Rollback() }() // a no-op once committed
	if err := f(tx); err != nil {
		return dberr.Wrap("journal."+op, doing, err)
	}
	return dberr.Wrap("journal."+op, doing, tx.Commit())
}

// exec runs one statement and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, op, doing, query string, args ...any) (int64, error) {
	res, err := s.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, dberr.Wrap("journal."+op, doing, err)
	}
	n, err := res.RowsAffected()
	return n, dberr.Wrap("journal."+op, doing, err)
}

// refused tells why a run that is there could not be changed.
func (s *Store) refused(ctx context.Context, op string, run task.ID) error {
	rec, err := s.Run(ctx, run)
	if err != nil {
		return err
	}
	return errs.New("journal."+op, errs.Conflict, "insightscli show "+run.Short(),
		"run %s is over (%s)", run.Short(), rec.State)
}

// exists returns an error unless the run is recorded.
func exists(ctx context.Context, tx *sql.Tx, run task.ID) error {
	var one int
	err := tx.QueryRowContext(ctx, `SELECT 1 FROM runs WHERE id = ?`, run).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return notFound("Run", string(run))
	}
	return err
}

func notFound(op, name string) error {
	return errs.New("journal."+op, errs.NotFound, "see the runs with: insightscli ps -a", "%w: %q", ErrNotFound, name)
}
